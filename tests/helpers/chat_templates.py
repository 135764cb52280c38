# SPDX-License-Identifier: Apache-2.0
"""Chat templates in the manner of well-known model families, and hostile ones."""

from __future__ import annotations

LLAMA3 = (
    "{% for message in messages %}"
    "{% set turn = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'"
    " + message['content'] | trim + '<|eot_id|>' %}"
    "{% if loop.index0 == 0 %}{% set turn = bos_token + turn %}{% endif %}{{ turn }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)

LLAMA2 = """\
{%- if messages[0]['role'] == 'system' -%}
    {%- set system = '<<SYS>>\\n' + messages[0]['content'].strip() + '\\n<</SYS>>\\n\\n' -%}
    {%- set turns = messages[1:] -%}
{%- else -%}
    {%- set system = '' -%}{%- set turns = messages -%}
{%- endif -%}
{%- for message in turns -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{- raise_exception('Roles must alternate user/assistant/user/assistant') -}}
    {%- endif -%}
    {%- if message['role'] == 'user' -%}
        {{- bos_token ~ '[INST] ' ~ (system if loop.first else '') ~ message['content'] | trim ~ ' [/INST]' -}}
    {%- else -%}
        {{- ' ' ~ message['content'] | trim ~ ' ' ~ eos_token -}}
    {%- endif -%}
{%- endfor -%}
"""

CHATML_THINKING = """\
{%- macro turn(role, text) %}<|im_start|>{{ role }}
{{ text }}<|im_end|>
{% endmacro %}
{%- if tools %}{{ raise_exception('no tools here') }}{% endif %}
{%- set ns = namespace(last=messages | length - 1, found=false) %}
{%- for message in messages[::-1] %}
    {%- if message.role == 'user' and not ns.found %}
        {%- set ns.last = messages | length - 1 - loop.index0 %}{% set ns.found = true %}
    {%- endif %}
{%- endfor %}
{%- if messages | selectattr('role', 'equalto', 'system') | list | length == 0 %}
    {{- turn('system', 'Plain keyboard model.') }}
{%- endif %}
{%- for message in messages %}
    {%- set text = message.content %}
    {%- if message.role == 'assistant' and '</think>' in text %}
        {%- set text = text.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {{- turn(message['role'], text) }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{ '<think>' }}{% endif %}
{%- endif %}
"""

EVERYTHING = """\
{{ bos_token }}{% set year = strftime_now('%Y') %}{% if year | int < 2000 %}old{% endif %}
{% set names %}{{ messages | map(attribute='role') | join('+') | upper }}{% endset %}
[{{ names | trim | replace('USER', 'U') }}] {{ messages[0] | tojson }} {{ {'a': [1, 'x']} | tojson(indent=2) }}
{% for key, value in messages[0].items() %}{{ loop.index }}:{{ key }}={{ value | string | length }};{% endfor %}
{% for message in messages %}
{% if loop.index > 3 %}{% break %}{% endif %}{% if not message.content %}{% continue %}{% endif %}
{% generation %}{{ message.role | capitalize }}{{ ', '.join(message.content.split()) }}{% endgeneration %}
{{ 'last' if loop.last else 'more' }}{{ loop.length }}{{ loop.cycle('a', 'b') }}<|eot_id|>
{% else %}
nobody
{% endfor %}
{% for i in range(3) %}{{ i * 2 }}{{ (i, 'x')[1] * 2 }}{% endfor %}
{{ messages | map(attribute='content') | first | default('none') | lower }}
{{ messages[-1].content[:5] ~ none ~ 1.5 ~ true }}{{ undefined_name }}
"""

FAMILIES = {
    "llama3": LLAMA3,
    "llama2": LLAMA2,
    "chatml-thinking": CHATML_THINKING,
    "everything": EVERYTHING,
}

_GROW = "{% for i in range(99) %}{% set ns.x = GROWN %}{% endfor %}"
_BIG = "{% set x = 'a' * 100000 %}"
HOSTILE = {
    "loops in loops": "{% for a in range(9999) %}" * 3 + "{% endfor %}" * 3,
    "a huge range": "{{ range(10 ** 12) | list }}",
    "a range that no machine holds": "{{ range(10 ** 30) | list }}",
    "endless output": "{% for a in range(99999) %}{{ messages[0].content }}{% endfor %}",
    "a doubled string": "{% set ns = namespace(x='ab') %}" + _GROW.replace("GROWN", "ns.x ~ ns.x"),
    "an added string": "{% set ns = namespace(x='ab') %}" + _GROW.replace("GROWN", "ns.x + ns.x"),
    "a repeated string": "{{ 'a' * 10 ** 10 }}{{ 10 ** 10 * 'a' }}",
    "a repeated list": "{{ ([0] * 10 ** 9) | length }}",
    "a power": "{{ 2 ** 64 ** 64 ** 64 }}",
    "a product": "{% set ns = namespace(x=3) %}" + _GROW.replace("GROWN", "ns.x * ns.x"),
    "a list that holds itself": "{% set ns = namespace(x=['a']) %}"
    + _GROW.replace("GROWN", "[ns.x, ns.x]")
    + "{{ ns.x | tojson }}",
    "a mapping that holds itself": "{% set ns = namespace(x={}) %}"
    + _GROW.replace("GROWN", "dict(a=ns.x, b=ns.x)")
    + "{{ ns.x == ns.x }}",
    "a hashed tuple": "{% set ns = namespace(x=(1,)) %}{% for a in range(15) %}"
    "{% set ns.x = (ns.x, ns.x) %}{% endfor %}{% for i in range(99999) %}{{ {}[ns.x] }}{% endfor %}",
    "macros that call twice": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}"
    "{% endmacro %}{{ f(60) }}",
    "a macro without end": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "a recursive loop": "{% for x in [1] recursive %}{{ loop([1, 1]) }}{% endfor %}",
    "a block in itself": "{% block a %}{{ self.a() }}{{ self.a() }}{% endblock %}",
    "wide filters": "{{ 'a' | center(10 ** 10) }}",
    "wide methods": "{{ 'a'.ljust(10 ** 10) }}",
    "wide formats": "{{ '%1000000000d' % 1 }}",
    "wider formats": "{{ '{:1000000000}'.format(1) }}",
    "wide numbers": "{{ (1).to_bytes(10 ** 10, 'big') }}",
    "wide dates": "{{ strftime_now('%999999999Y') }}",
    "wide json": "{{ [[1]] | tojson(indent=10 ** 9) }}",
    "replacing": _BIG + "{{ x | replace('a', x) | length }}{{ x.replace('', x) | length }}",
    "joining": _BIG + "{{ range(9999) | join(x) | length }}{{ x.join(x) | length }}",
    "a captured block": _BIG
    + "{% set y %}{% for i in range(9999) %}{{ x }}{% endfor %}{% endset %}",
    "stripping": _BIG + "{% set y = 'b' * 100000 ~ 'a' %}{{ x.strip(y) }}{{ x | trim(y) }}",
    "searching": _BIG + "{% set y = 'b' ~ 'a' * 50000 %}{{ x.rfind(y) }}",
    "looking for": _BIG + "{% for i in range(9999) %}{{ (x ~ 'b') in x }}{% endfor %}",
    "splitting": _BIG + "{% for i in range(9999) %}{{ x.split('a') | length }}{% endfor %}",
    "slicing": _BIG + "{% for i in range(9999) %}{% set y = x[1:] %}{% endfor %}",
    "sorting": _BIG + "{% for i in range(9999) %}{{ x | sort | length }}{% endfor %}",
    "listing": "{% set r = range(9999) %}{% for i in r %}{{ r | list | length }}{% endfor %}",
    "mapping": "{{ range(99999) | map('replace', '1', 'a' * 1000) | join | length }}",
    "long straight code": _BIG + "".join(f"{{% set a{i} = x ~ 1 %}}" for i in range(2_000)),
    "a long template": "a" * 70_000,
    "deep brackets": "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}",
    "deep conditions": "{% if 1 %}" * 2_000 + "{% endif %}" * 2_000,
    "deep loops": "{% for i in [1] %}" * 50 + "{% endfor %}" * 50,
    "a long number": "{{ " + "9" * 5_000 + " }}",
    "Python's classes": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "Python's globals": "{{ raise_exception.__globals__['json'] }}",
    "a changed list": "{{ messages.append(1) }}",
    "a private name": "{% set ns = namespace() %}{% set ns.__class__ = 1 %}{{ ns.__class__.x.y }}",
    "another file": "{% include '/etc/passwd' %}",
    "an unknown filter": "{{ 'a' | urlize }}",
    "a syntax error": "{% for %}",
    "an unfinished block": "{% if 1 %}",
    "an undefined value": "{{ messages[7].content.x }}",
    "a printed list": "{{ messages }}",
}
