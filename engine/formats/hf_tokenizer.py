# SPDX-License-Identifier: Apache-2.0
"""TokenizerSpec from the tokenizer.json of a Hugging Face folder and the files beside it.

`tokenizers` runs tokenizer.json as it is. What that file cannot say, or says in a way that others
overrule, is read here: special ids, whether a text begins with BOS, and the chat template.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.errors import ModelFileError, UnsupportedModelError
from engine.formats.bounds import MAX_CHAT_TEMPLATE_BYTES, printable
from engine.formats.json_file import JsonObject, read_json, read_small_file
from engine.formats.source import TokenizerKind, TokenizerSpec
from engine.texts import Text


def read_tokenizer(folder: Path, settings: JsonObject, vocab_size: int) -> TokenizerSpec:
    """Read the description of the tokeniser; `settings` is config.json.

    Raises:
        ModelFileError: a file is damaged, or an id is outside the vocabulary of the model.
        UnsupportedModelError: there is no tokenizer.json.
    """
    path = _find_tokenizer(folder)
    tokenizer = read_json(path)
    ids = _token_ids(tokenizer)
    most = max(ids.values(), default=-1)
    if most >= vocab_size:
        raise tokenizer.error(
            "model.vocab",
            Text(
                "has token {most}, the model has {vocab_size} embeddings",
                most=most,
                vocab_size=vocab_size,
            ),
        )
    options = _optional_json(folder / "tokenizer_config.json")
    generation = _optional_json(folder / "generation_config.json")
    first, last = _template(tokenizer)
    bos = _special(options, "bos_token", ids)
    if bos is None:
        bos = next(iter(_id_list(settings, "bos_token_id", vocab_size)), None)
    add_bos = options.flag("add_bos_token", first)
    if add_bos and bos is None:
        raise options.error("bos_token", "is missing, yet the tokeniser adds one")
    ends = [
        *_id_list(generation, "eos_token_id", vocab_size),
        *_id_list(settings, "eos_token_id", vocab_size),
    ]
    eos = _special(options, "eos_token", ids)
    return TokenizerSpec(
        path=folder,
        kind=TokenizerKind.TOKENIZER_JSON,
        vocab_size=vocab_size,
        bos_id=bos,
        eos_ids=tuple(dict.fromkeys(ends if eos is None else [*ends, eos])),
        unknown_id=_special(options, "unk_token", ids),
        add_bos=add_bos,
        add_eos=options.flag("add_eos_token", last),
        chat_template=_chat_template(folder, options),
        json_path=path,
    )


def _find_tokenizer(folder: Path) -> Path:
    path = folder / "tokenizer.json"
    if path.is_file():
        return path
    if (folder / "tokenizer.model").is_file():
        raise UnsupportedModelError(
            folder,
            "tokenizer.model",
            "a SentencePiece file alone is not supported; add the tokenizer.json that "
            "AutoTokenizer.from_pretrained(...).save_pretrained(...) writes, or use a GGUF file",
        )
    raise ModelFileError(folder, "tokenizer.json", "is missing")


def _optional_json(path: Path) -> JsonObject:
    return read_json(path) if path.exists() else JsonObject(path, {})


def _token_ids(tokenizer: JsonObject) -> dict[str, int]:
    """Every token and its id. A BPE without merges could not tokenise, so it is refused."""
    model = tokenizer.object("model")
    vocab = model.values.get("vocab")
    if not isinstance(vocab, dict | list) or not vocab:
        raise model.error("vocab", "is missing or empty")
    if model.text("type", "BPE") == "BPE" and not model.items("merges"):
        raise model.error("merges", "is missing or empty; without merges a BPE cannot tokenise")
    if isinstance(vocab, list):  # Unigram: [token, score] in the order of ids
        if not all(isinstance(e, list) and e and isinstance(e[0], str) for e in vocab):
            raise model.error("vocab", "holds an entry that is no token with its score")
        ids: dict[str, Any] = {entry[0]: number for number, entry in enumerate(vocab)}
    else:
        ids = dict(vocab)
    for number, entry in enumerate(tokenizer.items("added_tokens")):
        if not isinstance(entry, dict):
            raise tokenizer.error(f"added_tokens[{number}]", "is no object")
        added = JsonObject(tokenizer.path, entry, f"added_tokens[{number}]")
        ids[added.text("content")] = added.integer("id", 0, 1 << 31)
    if not all(type(number) is int and number >= 0 for number in ids.values()):
        raise model.error("vocab", "holds an entry that is no token with its id")
    return ids


def _template(tokenizer: JsonObject) -> tuple[bool, bool]:
    """Whether the post-processor puts a special token in front of a text, and behind it."""
    processor = tokenizer.object("post_processor")
    parts = [processor, *(_part(processor, entry) for entry in processor.items("processors"))]
    for part in parts:
        if part.text("type", "") != "TemplateProcessing":
            continue
        single = part.items("single")
        special = [isinstance(entry, dict) and "SpecialToken" in entry for entry in single]
        if special:
            return special[0], special[-1]
    return False, False


def _part(processor: JsonObject, entry: Any) -> JsonObject:
    if not isinstance(entry, dict):
        raise processor.error("processors", "holds an entry that is no object")
    return JsonObject(processor.path, entry, processor.field("processors"))


def _special(options: JsonObject, key: str, ids: dict[str, int]) -> int | None:
    """The id of a special token that tokenizer_config.json gives as text or as an object."""
    if key not in options:
        return None
    nested = isinstance(options.values[key], dict)
    token = options.object(key).text("content") if nested else options.text(key)
    if token not in ids:
        raise options.error(
            key, Text("{token} is not in the vocabulary", token=repr(printable(token)))
        )
    return ids[token]


def _id_list(holder: JsonObject, key: str, vocab_size: int) -> list[int]:
    """A token id or a list of them; empty if missing."""
    if key not in holder:
        return []
    values = holder.values[key]
    entries = values if isinstance(values, list) else [values]
    wrapped = JsonObject(holder.path, {f"{key}[{i}]": v for i, v in enumerate(entries)})
    return [wrapped.integer(name, 0, vocab_size - 1) for name in wrapped.values]


def _chat_template(folder: Path, options: JsonObject) -> str | None:
    """chat_template.jinja, else the (default) template in tokenizer_config.json."""
    path = folder / "chat_template.jinja"
    if path.exists():
        data = read_small_file(path, MAX_CHAT_TEMPLATE_BYTES)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ModelFileError(
                path, "file", Text("is not UTF-8 at byte {error_start}", error_start=error.start)
            ) from None
    key = "chat_template"
    if key not in options:
        return None
    if isinstance(options.values[key], list):
        named = [entry for entry in options.items(key) if isinstance(entry, dict)]
        chosen = next((entry for entry in named if entry.get("name") == "default"), None)
        if chosen is None:
            return None
        options, key = JsonObject(options.path, chosen, key), "template"
    template = options.text(key)
    if len(template.encode()) > MAX_CHAT_TEMPLATE_BYTES:
        raise options.error(
            key,
            Text(
                "is longer than {max_chat_template_bytes} bytes",
                max_chat_template_bytes=MAX_CHAT_TEMPLATE_BYTES,
            ),
        )
    return template
