# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face tokenizer.json: its normaliser, pre-tokeniser and model run as they are.

Two parts are left out. Added tokens are matched by us, because typed text must not be able to form a
control token; their texts are also made unreachable inside the model, where merges or scores could
rebuild them. And the post-processor, because BOS must not come twice: whoever wrote the spec has
read from it whether BOS and EOS are added.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tokenizers
from tokenizers import models

from engine.errors import ModelFileError, UnsupportedModelError
from engine.formats.bounds import printable
from engine.formats.json_file import JsonObject, read_json
from engine.formats.source import TokenizerSpec
from engine.texts import Text
from engine.tokenizer import parts
from engine.tokenizer.bpe import spelled_bytes
from engine.tokenizer.sentencepiece import BYTE_PIECE, SPACE
from engine.tokenizer.special import ALWAYS_CONTROL, SpecialToken

_NORMALIZERS = frozenset(
    ("Sequence", "NFC", "NFD", "NFKC", "NFKD", "Prepend", "Replace", "Strip", "Lowercase")
)
_PRE_TOKENIZERS = frozenset(
    ("Sequence", "ByteLevel", "Split", "Digits", "Metaspace", "Punctuation", "WhitespaceSplit")
)


def build(spec: TokenizerSpec) -> parts.TokenizerParts:
    """Build the parts of the tokeniser in `spec.json_path`.

    Raises:
        UnsupportedModelError: a model, normaliser, pre-tokeniser or decoder that Thock lacks, by its
            name.
        ModelFileError: the file is damaged.
    """
    if spec.json_path is None:
        raise ModelFileError(spec.path, "tokenizer.json", "missing")
    document = read_json(spec.json_path)
    model = document.object("model")
    vocabulary = _vocabulary(model, spec.vocab_size)
    special = tuple(_added_tokens(document, spec))
    texts = vocabulary | {token.text: token.id for token in special}
    count = max(texts.values(), default=-1) + 1
    if count == 0:
        raise ModelFileError(spec.json_path, "model.vocab", "the vocabulary is empty")
    parts.check_special_ids(spec, count, place="")
    prefix, suffix = parts.end_ids(spec)
    opening, following = _backends(document, _model(model, vocabulary, special))
    to_bytes, drops_first_space = _decoder(document)
    token_bytes = [b""] * count
    for text, index in vocabulary.items():
        token_bytes[index] = to_bytes(text)
    for token in special:
        token_bytes[token.id] = token.text.encode()
    silent = {token.id for token in special if token.control}
    silent |= set(range(count)).difference(texts.values())
    return parts.TokenizerParts(
        opening=opening,
        following=following,
        token_bytes=tuple(token_bytes),
        special=special,
        silent=frozenset(silent),
        prefix=prefix,
        suffix=suffix,
        drops_first_space=drops_first_space,
    )


def _vocabulary(model: JsonObject, limit: int) -> dict[str, int]:
    """Text -> id of the model's own tokens; ids are distinct and below `limit`."""
    kind = model.text("type", "BPE")
    if kind == "BPE":
        vocabulary = model.object("vocab").values
    elif kind == "Unigram":
        vocabulary = {}
        for index, entry in enumerate(model.items("vocab")):
            if not isinstance(entry, list) or not entry or not isinstance(entry[0], str):
                raise model.error(f"vocab[{index}]", "is no pair of text and score")
            vocabulary[entry[0]] = index
    else:
        reason = Text("is {kind}; Thock has BPE and Unigram", kind=repr(printable(kind)))
        raise UnsupportedModelError(model.path, model.field("type"), reason)
    if not all(type(index) is int and 0 <= index < limit for index in vocabulary.values()):
        raise model.error("vocab", Text("has an id that is no number below {limit}", limit=limit))
    if len(set(vocabulary.values())) != len(vocabulary) or (
        kind == "Unigram" and len(vocabulary) != len(model.items("vocab"))
    ):
        raise model.error("vocab", "has two tokens with one text or one id")
    return vocabulary


def _added_tokens(document: JsonObject, spec: TokenizerSpec) -> Iterator[SpecialToken]:
    """The added tokens that the model has a row for.

    `normalized` is taken as false for all: it differs only where a normaliser would change a
    special token's own text.
    """
    ends = {spec.bos_id, *spec.eos_ids}
    for index, entry in enumerate(document.items("added_tokens")):
        if not isinstance(entry, dict):
            raise document.error(f"added_tokens[{index}]", "is no object")
        token = JsonObject(document.path, entry, f"added_tokens[{index}]")
        number, text = token.integer("id", 0, (1 << 31) - 1), token.text("content")
        if number < spec.vocab_size and text:
            special = token.flag("special", False) or text in ALWAYS_CONTROL or number in ends
            yield SpecialToken(
                number,
                text,
                control=special,
                lstrip=token.flag("lstrip", False),
                rstrip=token.flag("rstrip", False),
                single_word=token.flag("single_word", False),
            )


def _model(
    model: JsonObject, vocabulary: Mapping[str, int], special: tuple[SpecialToken, ...]
) -> models.Model:
    """The model, with control tokens under names that nobody can type."""
    names = {t.text: secrets.token_hex(16) for t in special if t.control}
    if model.text("type", "BPE") == "Unigram":
        return _unigram(model, names)
    for option in ("continuing_subword_prefix", "end_of_word_suffix", "dropout"):
        if model.values.get(option):
            reason = "is not supported; Thock has plain BPE"
            raise UnsupportedModelError(model.path, model.field(option), reason)
    unknown = model.text("unk_token") if "unk_token" in model else None
    if unknown is not None and unknown not in vocabulary:
        raise model.error("unk_token", "is not in the vocabulary")
    return models.BPE(
        {names.get(text, text): index for text, index in vocabulary.items()},
        list(_merges(model, vocabulary, names)),
        cache_capacity=0,  # as in bpe.py: no typed text is kept
        unk_token=None if unknown is None else names.get(unknown, unknown),
        fuse_unk=model.flag("fuse_unk", False),
        byte_fallback=model.flag("byte_fallback", False),
        ignore_merges=model.flag("ignore_merges", False),
    )


def _merges(
    model: JsonObject, vocabulary: Mapping[str, int], hidden: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Merges as pairs, without those that touch a hidden text."""
    for index, entry in enumerate(model.items("merges")):
        pair = entry.split(" ", 1) if isinstance(entry, str) else entry
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(p) is str for p in pair)):
            raise model.error(f"merges[{index}]", "is no pair of tokens")
        left, right = pair
        whole = left + right
        if left not in vocabulary or right not in vocabulary or whole not in vocabulary:
            raise model.error(f"merges[{index}]", "names a token that is not in the vocabulary")
        if hidden.keys().isdisjoint((left, right, whole)):
            yield left, right


def _unigram(model: JsonObject, names: Mapping[str, str]) -> models.Model:
    pieces: list[tuple[str, float]] = []
    for entry in model.items("vocab"):
        score = JsonObject(model.path, {"score": entry[-1]}, "model")
        pieces.append((names.get(entry[0], entry[0]), score.real("score", -1e9, 1e9)))
    unknown = model.integer("unk_id", 0, len(pieces) - 1) if "unk_id" in model else None
    built = models.Unigram(pieces, unknown, model.flag("byte_fallback", False))
    built._resize_cache(0)  # the constructor has no option for it
    return built


def _backends(
    document: JsonObject, model: models.Model
) -> tuple[tokenizers.Tokenizer, tokenizers.Tokenizer]:
    """The tokeniser for the first text of an input, and the one for text after a special token."""
    _check_types(document, "normalizer", "normalizers", _NORMALIZERS)
    _check_types(document, "pre_tokenizer", "pretokenizers", _PRE_TOKENIZERS)
    steps = {key: document.values.get(key) for key in ("normalizer", "pre_tokenizer")}
    opening = _backend(document, steps, model)
    text = json.dumps(steps)
    # Metaspace `first` puts a space in front of the first word of the input only.
    later = re.sub(r'"prepend_scheme": "first"', '"prepend_scheme": "never"', text)
    following = opening if later == text else _backend(document, json.loads(later), model)
    return opening, following


def _backend(
    document: JsonObject, steps: Mapping[str, Any], model: models.Model
) -> tokenizers.Tokenizer:
    empty = {"type": "BPE", "vocab": {}, "merges": []}
    text = json.dumps({"version": "1.0", "added_tokens": [], **steps, "model": empty})
    try:
        backend = tokenizers.Tokenizer.from_str(text)
    except Exception as error:  # `tokenizers` has no exception type of its own
        reason = Text("the library refuses it: {error}", error=printable(str(error)))
        raise ModelFileError(document.path, "normalizer or pre_tokenizer", reason) from error
    backend.model = model
    return backend


def _check_types(parent: JsonObject, key: str, children: str, allowed: frozenset[str]) -> None:
    """Raise UnsupportedModelError if `parent[key]` or a step inside it is of an unknown type."""
    if key not in parent:
        return
    step = parent.object(key)
    kind = step.text("type")
    if kind not in allowed:
        reason = Text(
            "is {kind}; Thock has {allowed}",
            kind=repr(printable(kind)),
            allowed=", ".join(sorted(allowed)),
        )
        raise UnsupportedModelError(parent.path, step.field("type"), reason)
    for index, child in enumerate(step.items(children)):
        holder = JsonObject(parent.path, {str(index): child}, step.field(children))
        _check_types(holder, str(index), children, allowed)


def _steps(document: JsonObject, key: str, children: str) -> Iterator[JsonObject]:
    """`document[key]`, or the steps inside it if it is a sequence."""
    if key not in document:
        return
    step = document.object(key)
    if step.text("type") != "Sequence":
        yield step
        return
    for index, child in enumerate(step.items(children)):
        holder = JsonObject(document.path, {str(index): child}, step.field(children))
        yield from _steps(holder, str(index), children)


def _decoder(document: JsonObject) -> tuple[Callable[[str], bytes], bool]:
    """How a token's text becomes bytes, and whether the first space of a text is dropped."""
    kinds: set[str] = set()
    drops_first_space = False
    for step in _steps(document, "decoder", "decoders"):
        kind = step.text("type")
        kinds.add(kind)
        if kind == "Strip":
            drops_first_space = step.integer("start", 0, 1, 0) == 1
        elif kind == "Metaspace":
            drops_first_space = step.text("prepend_scheme", "always") != "never"
        elif kind == "Replace" and (
            step.object("pattern").values != {"String": SPACE} or step.text("content") != " "
        ):
            raise step.error(
                "pattern", Text("replaces something else than {space} by a space", space=SPACE)
            )
        elif kind not in ("ByteLevel", "ByteFallback", "Fuse", "Replace"):
            reason = Text(
                "is {kind}; Thock has ByteLevel and the steps of SentencePiece",
                kind=repr(printable(kind)),
            )
            raise UnsupportedModelError(document.path, step.field("type"), reason)
    if "ByteLevel" in kinds:
        return spelled_bytes, False
    if not kinds & {"Replace", "Metaspace"}:
        reason = Text("is missing or has no step that turns tokens back into text")
        raise UnsupportedModelError(document.path, "decoder", reason)
    byte_fallback = "ByteFallback" in kinds

    def piece_bytes(text: str) -> bytes:
        match = BYTE_PIECE.fullmatch(text) if byte_fallback else None
        return bytes.fromhex(match[1]) if match else text.replace(SPACE, " ").encode()

    return piece_bytes, drops_first_space
