# SPDX-License-Identifier: Apache-2.0
"""Open a Hugging Face folder (config.json and safetensors) as a ModelSource."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from engine.config import RopeLayout
from engine.errors import ModelFileError, UnsupportedModelError
from engine.formats.bounds import printable
from engine.formats.hf_config import read_architecture, read_config
from engine.formats.hf_tokenizer import read_tokenizer
from engine.formats.json_file import JsonObject, read_json
from engine.formats.mapped_file import MappedFile
from engine.formats.safetensors_file import read_safetensors
from engine.formats.stored_model import StoredModel, check_tensors
from engine.formats.tensors import StoredTensor
from engine.texts import Text

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
MAX_SHARDS = 256  # each holds a file descriptor; processes may have 1024
_NAMES = {
    "model.embed_tokens.weight": "embed",
    "model.norm.weight": "final_norm",
    "lm_head.weight": "head",
}
_LAYER_NAMES = {
    "input_layernorm.weight": "attn_norm",
    "post_attention_layernorm.weight": "ffn_norm",
    "self_attn.q_proj.weight": "wq",
    "self_attn.k_proj.weight": "wk",
    "self_attn.v_proj.weight": "wv",
    "self_attn.o_proj.weight": "wo",
    "self_attn.q_proj.bias": "bq",
    "self_attn.k_proj.bias": "bk",
    "self_attn.v_proj.bias": "bv",
    "mlp.gate_proj.weight": "w_gate",
    "mlp.up_proj.weight": "w_up",
    "mlp.down_proj.weight": "w_down",
}
_LAYER = re.compile(r"model\.layers\.(0|[1-9][0-9]{0,4})\.(.+)")
# Rotary frequencies in old checkpoints; transformers computes them anew as well.
_IGNORED = frozenset(("inv_freq",))


def open_huggingface(folder: Path) -> StoredModel:
    """Read config.json and the headers of the weights; weights are read when asked for.

    Raises:
        ModelFileError: a file is missing or damaged; the error names file and field.
        UnsupportedModelError: a model that Thock does not compute, or weights in pickle files.
    """
    if not (folder / "config.json").exists():
        raise ModelFileError(folder, "config.json", _advice_without_config(folder))
    settings = read_json(folder / "config.json")
    read_architecture(settings)  # before the weights, so that a foreign model is named as such
    files: list[MappedFile] = []
    try:
        tensors = _by_our_names(_read_weights(folder, files))
        config = read_config(settings, has_head="head" in tensors)
        if config.tied_head:
            tensors.pop("head", None)  # transformers ties over it, too
        check_tensors(folder, config, tensors, file_name)
    except ModelFileError:
        for file in files:
            file.close()
        raise
    return StoredModel(
        folder,
        "safetensors",
        config,
        tensors,
        rope_layout=RopeLayout.HALF_SPLIT,
        files=files,
        read_tokenizer=lambda: read_tokenizer(folder, settings, config.vocab_size),
    )


def file_name(name: str) -> str:
    """Our name of a tensor -> its name in a safetensors file."""
    if not name.startswith("layers."):
        return next(theirs for theirs, ours in _NAMES.items() if ours == name)
    _, layer, part = name.split(".")
    return f"model.layers.{layer}." + next(t for t, ours in _LAYER_NAMES.items() if ours == part)


def _advice_without_config(folder: Path) -> str:
    gguf = sorted(folder.glob("*.gguf"))
    if gguf:
        return Text(
            "is missing; to use a GGUF file, name it: {gguf_name}",
            gguf_name=printable(gguf[0].name),
        )
    return "is missing; a model folder holds config.json, tokenizer.json and *.safetensors"


def _read_weights(folder: Path, files: list[MappedFile]) -> dict[str, StoredTensor]:
    """All tensors by their names in the files. Each file that is opened goes into `files`."""
    if (folder / SINGLE_FILE).exists():
        files.append(MappedFile(folder / SINGLE_FILE))
        return read_safetensors(files[0], _IGNORED)
    if not (folder / INDEX_FILE).exists():
        pickles = sorted([*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.pth")])
        if pickles:
            raise UnsupportedModelError(
                folder,
                printable(pickles[0].name),
                "pickle files can run code; convert the model to safetensors",
            )
        raise ModelFileError(folder, SINGLE_FILE, "is missing")
    index = read_json(folder / INDEX_FILE)
    weight_map = _weight_map(index)
    tensors: dict[str, StoredTensor] = {}
    for shard in sorted(set(weight_map.values())):
        if not (folder / shard).exists():
            raise index.error(
                "weight_map", Text("names {shard}, which is missing", shard=printable(shard))
            )
        file = MappedFile(folder / shard)
        files.append(file)
        for name, tensor in read_safetensors(file, _IGNORED).items():
            if weight_map.get(name) != shard:
                raise ModelFileError(file.path, tensor.field, "is not in the index for this file")
            tensors[name] = tensor
    lost = next((name for name in weight_map if name not in tensors and not _ignored(name)), None)
    if lost is not None:
        raise index.error(f"weight_map.{printable(lost)}", "is in none of the files")
    return tensors


def _ignored(name: str) -> bool:
    return name.rsplit(".", 1)[-1] in _IGNORED


def _weight_map(index: JsonObject) -> dict[str, str]:
    """Tensor -> file. A file name is a plain one in the same folder, never a path."""
    weight_map = index.object("weight_map").values
    if not weight_map:
        raise index.error("weight_map", "is missing or empty")
    for name, shard in weight_map.items():
        if not isinstance(shard, str) or not re.fullmatch(
            r"[A-Za-z0-9_.-]{1,200}\.safetensors", shard
        ):
            raise index.error(
                f"weight_map.{printable(name)}", "is no plain name of a safetensors file"
            )
    if len(set(weight_map.values())) > MAX_SHARDS:
        raise index.error(
            "weight_map", Text("names more than {max_shards} files", max_shards=MAX_SHARDS)
        )
    return weight_map


def _by_our_names(tensors: Mapping[str, StoredTensor]) -> dict[str, StoredTensor]:
    """A tensor that we do not know would change the model's output, so it is refused."""
    ours: dict[str, StoredTensor] = {}
    for name, tensor in tensors.items():
        match = _LAYER.fullmatch(name)
        part = _LAYER_NAMES.get(match[2]) if match else _NAMES.get(name)
        if part is None:
            reason = "is a part that Thock does not compute"
            raise UnsupportedModelError(tensor.file.path, tensor.field, reason)
        ours[f"layers.{match[1]}.{part}" if match else part] = tensor
    return ours
