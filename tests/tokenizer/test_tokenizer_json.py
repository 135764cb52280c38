# SPDX-License-Identifier: Apache-2.0
"""tokenizer.json: the ids and texts of the `tokenizers` library running the same file as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers.processors import TemplateProcessing

from engine.errors import ModelFileError, UnsupportedModelError
from engine.formats.source import TokenizerKind, TokenizerSpec
from engine.tokenizer import Tokenizer
from tests.helpers.corpus import corpus
from tests.helpers.tokenizer_references import LLAMA3
from tests.helpers.vocabularies import (
    CONTROL,
    byte_level,
    first_difference,
    sentencepiece_model,
    sentencepiece_spec,
)


def llama3() -> LibraryTokenizer:
    """As Llama 3: BOS from the post-processor, control tokens behind the vocabulary."""
    vocabulary = byte_level()
    library = LibraryTokenizer(
        models.BPE(dict(vocabulary.ids), list(vocabulary.merges), ignore_merges=True)
    )
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LLAMA3), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens([AddedToken(name, normalized=False) for name in CONTROL])
    library.add_tokens([AddedToken("[INST]", normalized=False), AddedToken("hi", single_word=True)])
    bos = library.token_to_id(CONTROL[0])
    library.post_processor = TemplateProcessing(
        single=f"{CONTROL[0]} $A", pair=None, special_tokens=[(CONTROL[0], bos)]
    )
    return library


def gpt2() -> LibraryTokenizer:
    """As GPT-2, with one token that swallows the white space around it."""
    vocabulary = byte_level()
    library = LibraryTokenizer(models.BPE(dict(vocabulary.ids), list(vocabulary.merges)))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens(
        [AddedToken(CONTROL[0]), AddedToken("<|im_end|>", lstrip=True, rstrip=True)]
    )
    return library


def _llama2_model() -> models.BPE:
    spec = sentencepiece_spec()
    pieces = {token: index for index, token in enumerate(spec.tokens)}
    ranked = sorted(pieces, key=lambda token: -spec.scores[pieces[token]])
    merges = [
        (token[:cut], token[cut:])
        for token in ranked
        for cut in range(1, len(token))
        if token[:cut] in pieces and token[cut:] in pieces
    ]
    return models.BPE(pieces, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)


def _llama2_decoder(strip: bool = True) -> decoders.Decoder:
    steps: list[decoders.Decoder] = [decoders.Replace("▁", " "), decoders.ByteFallback()]
    steps.append(decoders.Fuse())
    return decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if strip else steps)


def llama2() -> LibraryTokenizer:
    """As Llama 2 and TinyLlama: a normaliser puts a space in front of each text."""
    library = LibraryTokenizer(_llama2_model())
    library.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    library.decoder = _llama2_decoder()
    library.add_special_tokens([AddedToken(t, normalized=False) for t in ("<unk>", "<s>", "</s>")])
    return library


def llama2_first_only() -> LibraryTokenizer:
    """As newer conversions: Metaspace puts a space in front of the first word only."""
    library = LibraryTokenizer(_llama2_model())
    library.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    library.decoder = _llama2_decoder()
    library.add_special_tokens([AddedToken(t, normalized=False) for t in ("<unk>", "<s>", "</s>")])
    return library


def unigram() -> LibraryTokenizer:
    """A Unigram model, as some Llama-family models have."""
    library = LibraryTokenizer(models.Unigram())
    library.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always")
    trainer = trainers.UnigramTrainer(
        vocab_size=2_500, special_tokens=["<unk>", "<s>", "</s>"], unk_token="<unk>",
        show_progress=False,
    )  # fmt: skip
    library.train_from_iterator([t for t in corpus()[:300] if "<" not in t], trainer)
    library.decoder = decoders.Metaspace("▁", prepend_scheme="always")
    return library


MADE: dict[str, Callable[[], LibraryTokenizer]] = {
    "llama3": llama3,
    "gpt2": gpt2,
    "llama2": llama2,
    "llama2-first": llama2_first_only,
    "unigram": unigram,
}


def spec_of(path: Path, library: LibraryTokenizer, **changes: Any) -> TokenizerSpec:
    bos = library.token_to_id(CONTROL[0])
    fields: dict[str, Any] = {
        "path": path.parent,
        "kind": TokenizerKind.TOKENIZER_JSON,
        "vocab_size": library.get_vocab_size(),
        "bos_id": bos if bos is not None else library.token_to_id("<s>"),
        "json_path": path,
    }
    return TokenizerSpec(**(fields | changes))


@pytest.fixture(scope="module", params=MADE)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Tokenizer, LibraryTokenizer]:
    path = tmp_path_factory.mktemp("json") / "tokenizer.json"
    library = MADE[request.param]()
    library.save(str(path))
    add_bos = library.post_processor is not None
    return Tokenizer.from_spec(spec_of(path, library, add_bos=add_bos)), library


def test_ids_equal_the_library(pair: tuple[Tokenizer, LibraryTokenizer]) -> None:
    ours, library = pair
    for add_special in (True, False):
        # The library would put a second BOS in front of a text that begins with one.
        texts = [text for text in corpus() if not text.startswith(CONTROL[0])]
        difference = first_difference(
            texts,
            lambda t: ours.encode(t, add_special=add_special, parse_special=True),  # noqa: B023
            lambda t: library.encode(t, add_special_tokens=add_special).ids,  # noqa: B023
        )
        assert not difference


def test_texts_equal_the_library(pair: tuple[Tokenizer, LibraryTokenizer]) -> None:
    ours, library = pair
    for text in corpus():
        ids = ours.encode(text, add_special=False, parse_special=False)
        assert ours.decode(ids) == library.decode(ids)


def test_typed_names_never_become_control_tokens(
    pair: tuple[Tokenizer, LibraryTokenizer],
) -> None:
    ours, library = pair
    control = {i for i, token in library.get_added_tokens_decoder().items() if token.special}
    unknown = library.token_to_id("<unk>")
    seen = set()
    for text in [*corpus(), *CONTROL, "<s>a</s>", " </s>"]:
        ids = ours.encode(text, add_special=False, parse_special=False)
        assert not control.intersection(ids) - {unknown}
        seen.update(control.intersection(library.encode(text).ids))
    assert seen - {unknown}, "the library alone would have made control tokens of them"


def test_sentencepiece_file_equals_sentencepiece(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    library = llama2()
    library.save(str(path))
    ours = Tokenizer.from_spec(spec_of(path, library))
    difference = first_difference(
        corpus(),
        lambda t: ours.encode(t, add_special=False, parse_special=False),
        sentencepiece_model().encode,
    )
    assert not difference


def test_added_tokens_without_a_row_in_the_model_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    library = llama3()
    library.save(str(path))
    rows = library.get_vocab_size() - 1
    ours = Tokenizer.from_spec(spec_of(path, library, vocab_size=rows))
    assert ours.vocab_size == rows
    ids = ours.encode("oh hi", add_special=False, parse_special=True)
    assert max(ids) < rows
    assert ours.decode(ids) == "oh hi"


def _set(document: dict[str, Any], place: str, value: Any) -> None:
    *parents, last = place.split(".")
    for key in parents:
        document = document[key]
    document[last] = value


UNSUPPORTED = {
    "model.type": ("WordPiece", "model.type"),
    "model.dropout": (0.1, "model.dropout"),
    "model.end_of_word_suffix": ("</w>", "model.end_of_word_suffix"),
    "normalizer": ({"type": "Precompiled", "precompiled_charsmap": "AAAA"}, "normalizer.type"),
    "pre_tokenizer": ({"type": "UnicodeScripts"}, "pre_tokenizer.type"),
    "decoder": ({"type": "WordPiece"}, "decoder.type"),
}


@pytest.mark.parametrize("place", UNSUPPORTED)
def test_unsupported_parts_are_refused_by_name(place: str, tmp_path: Path) -> None:
    library = llama3()
    document = json.loads(library.to_str())
    value, field = UNSUPPORTED[place]
    _set(document, place, value)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document), "utf-8")
    with pytest.raises(UnsupportedModelError) as caught:
        Tokenizer.from_spec(spec_of(path, library))
    assert caught.value.field == field


DAMAGED: dict[str, Any] = {
    "model": [],
    "model.vocab": {"a": 0, "b": 0},
    "model.merges": [["Ġ", "nosuch"]],
    "model.unk_token": "nosuch",
    "model.byte_fallback": "yes",
    "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"},
    "normalizer": {"type": "Sequence", "normalizers": [7]},
    "added_tokens": [{"id": "x"}],
    "decoder": {"type": "Sequence", "decoders": [{"type": "Strip", "start": 9}]},
}


@pytest.mark.parametrize("place", DAMAGED)
def test_damaged_files_are_refused(place: str, tmp_path: Path) -> None:
    library = llama3()
    document = json.loads(library.to_str())
    _set(document, place, DAMAGED[place])
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document), "utf-8")
    with pytest.raises(ModelFileError) as caught:
        Tokenizer.from_spec(spec_of(path, library))
    assert caught.value.path == path
    assert caught.value.field


def test_a_file_is_needed(tmp_path: Path) -> None:
    library = llama3()
    missing = tmp_path / "tokenizer.json"
    for json_path in (None, missing):
        with pytest.raises(ModelFileError):
            Tokenizer.from_spec(spec_of(missing, library, json_path=json_path))
