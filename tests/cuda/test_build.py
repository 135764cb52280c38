# SPDX-License-Identifier: Apache-2.0
"""Every kernel variant compiles for every architecture, within the figures recorded here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.config import ModelConfig
from engine.cuda import build
from engine.cuda.cluster_shape import ClusterVariant, fitting_variant
from engine.cuda.errors import CompileError, NoDeviceError
from engine.cuda.panel_shape import PanelVariant
from engine.cuda.shape import KernelVariant
from engine.fp8.quantise import Grouping
from tests.helpers.random_source import tiny_config

SMOLLM2 = tiny_config(
    heads=(9, 3), head_dim=64, dim=576, ffn=1536, vocab=49152, layers=30, context=2048
)
LLAMA_1B = tiny_config(
    heads=(32, 8), head_dim=64, dim=2048, ffn=8192, vocab=128256, layers=16, context=4096
)
LLAMA_7B = tiny_config(
    heads=(32, 32), head_dim=128, dim=4096, ffn=11008, vocab=32000, layers=32, context=4096
)
QWEN = tiny_config(
    heads=(14, 2), head_dim=64, dim=896, ffn=4864, vocab=151936, bias=True, layers=24
)

# Spilled bytes a thread (stores), by architecture; measured with NVRTC 13.5, with some to
# spare. On sm_120 ptxas spills far more for reasons not yet found.
# Registers are capped at 65,536 / 384 threads = 168.
MOST_SPILLED = {"sm_89": 450, "sm_90a": 450, "sm_120": 3000}
VARIANTS = [
    ("smollm2", SMOLLM2, Grouping.CHANNEL, 2),
    ("smollm2", SMOLLM2, Grouping.G64, 2),
    ("qwen", QWEN, Grouping.G128, 2),
    ("1b", LLAMA_1B, Grouping.CHANNEL, 2),
    ("7b", LLAMA_7B, Grouping.CHANNEL, 1),
]

try:
    build.compiler_version()
except NoDeviceError as missing:
    pytest.skip(f"needs the CUDA compiler: {missing}", allow_module_level=True)


@pytest.mark.parametrize("arch", build.ARCHITECTURES)
@pytest.mark.parametrize(
    ("name", "config", "grouping", "wide"),
    VARIANTS,
    ids=[f"{name}-{grouping.name}-{wide}" for name, _, grouping, wide in VARIANTS],
)
def test_variant_compiles_within_its_figures(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    config: ModelConfig,
    grouping: Grouping,
    wide: int,
    arch: str,
) -> None:
    # From its own cache NVRTC would answer without the figures.
    monkeypatch.setattr(build, "_OPTIONS", (*build._OPTIONS, "--no-cache"))
    built = build.compile_kernel(KernelVariant(config, grouping, wide, arch))
    assert built.cubin.startswith(b"\x7fELF")
    assert built.resources is not None
    assert built.resources.registers <= 168
    assert built.resources.spill_store_bytes <= MOST_SPILLED[arch]


@pytest.mark.parametrize(
    ("name", "config", "wide"),
    [("smollm2", SMOLLM2, 3), ("qwen", QWEN, 1)],
    ids=["smollm2", "qwen"],
)
def test_cluster_variant_compiles_within_its_figures(
    monkeypatch: pytest.MonkeyPatch, name: str, config: ModelConfig, wide: int
) -> None:
    monkeypatch.setattr(build, "_OPTIONS", (*build._OPTIONS, "--no-cache"))
    variant = fitting_variant(config, Grouping.CHANNEL, "sm_90a", 227 << 10, 64)
    assert variant is not None
    assert variant.wide == wide
    assert variant.shared_bytes(64) <= 227 << 10
    resources = build.compile_kernel(variant).resources
    assert resources is not None
    assert resources.registers <= 128  # 14 warps: four a scheduler
    # Above this the kernel was seen to lose more to local memory than all else gained.
    assert resources.spill_store_bytes <= 60


@pytest.mark.parametrize(
    ("config", "most_spilled"), [(LLAMA_1B, 60), (LLAMA_7B, 600)], ids=["1b", "7b"]
)
def test_panel_variant_compiles_within_its_figures(
    monkeypatch: pytest.MonkeyPatch, config: ModelConfig, most_spilled: int
) -> None:
    monkeypatch.setattr(build, "_OPTIONS", (*build._OPTIONS, "--no-cache"))
    logs: list[str] = []
    parse = build._parse
    monkeypatch.setattr(build, "_parse", lambda log: (logs.append(log), parse(log))[1])
    resources = build.compile_kernel(PanelVariant(config, 132, 227 << 10)).resources
    assert resources is not None
    assert resources.registers <= 128  # 16 warps; setmaxnreg moves them from helpers to workers
    assert resources.spill_store_bytes <= most_spilled
    # C7510 and its like: the compiler waits after each matrix instruction.
    assert "serialized" not in logs[0]


@pytest.mark.parametrize(
    ("config", "grouping", "arch"),
    [
        (SMOLLM2, Grouping.CHANNEL, "sm_89"),
        (SMOLLM2, Grouping.CHANNEL, "sm_120"),
        (SMOLLM2, Grouping.G64, "sm_90a"),
        (LLAMA_1B, Grouping.CHANNEL, "sm_90a"),
        (LLAMA_7B, Grouping.CHANNEL, "sm_90a"),
        (tiny_config(), Grouping.CHANNEL, "sm_90a"),
    ],
)
def test_the_rest_is_for_the_grid_kernel(
    config: ModelConfig, grouping: Grouping, arch: str
) -> None:
    assert fitting_variant(config, grouping, arch, 227 << 10, 64) is None


def test_a_cluster_variant_names_its_own_source() -> None:
    variant = ClusterVariant(SMOLLM2, 2, (3, 3))
    assert build.key_of(variant) != build.key_of(ClusterVariant(SMOLLM2, 2, (3, 2)))
    assert (
        f"__global__ void __launch_bounds__(ALL_THREADS, 1) {variant.kernel}"
        in build.sources()[variant.main]
    )


@pytest.mark.parametrize(
    ("config", "wide", "arch", "limit"),
    [
        (SMOLLM2, 2, "sm_89", 99 << 10),
        (LLAMA_1B, 1, "sm_89", 99 << 10),
        (SMOLLM2, 4, "sm_90a", 227 << 10),
        (LLAMA_7B, 1, "sm_90a", 227 << 10),
    ],
)
def test_shared_memory_fits_the_device(
    config: ModelConfig, wide: int, arch: str, limit: int
) -> None:
    variant = KernelVariant(config, Grouping.CHANNEL, wide, arch)
    # The rest: the program (up to 400 instructions) and the residual of a block's own tiles.
    assert variant.shared_struct_bytes + variant.scratch_bytes + 14_000 <= limit


def test_a_cached_kernel_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variant = KernelVariant(tiny_config(), Grouping.CHANNEL, 1, "sm_89")
    first = build.cached_kernel(variant, tmp_path)
    assert [p.suffix for p in tmp_path.iterdir()] == [".cubin"]
    monkeypatch.setattr(build, "compile_kernel", lambda *_: pytest.fail("compiled again"))
    assert build.cached_kernel(variant, tmp_path).cubin == first.cubin


def test_the_key_follows_everything_that_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    variant = KernelVariant(tiny_config(), Grouping.CHANNEL, 1, "sm_89")
    keys = {
        build.key_of(variant),
        build.key_of(KernelVariant(tiny_config(ffn=128), Grouping.CHANNEL, 1, "sm_89")),
        build.key_of(KernelVariant(tiny_config(), Grouping.G64, 1, "sm_89")),
        build.key_of(KernelVariant(tiny_config(), Grouping.CHANNEL, 2, "sm_89")),
        build.key_of(KernelVariant(tiny_config(), Grouping.CHANNEL, 1, "sm_120")),
    }
    monkeypatch.setattr(build, "compiler_version", lambda: (1, 0))
    keys.add(build.key_of(variant))
    monkeypatch.setattr(build, "sources", lambda: {"forward.cu": "other"})
    keys.add(build.key_of(variant))
    assert len(keys) == 7


def test_a_refused_kernel_shows_the_compilers_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "sources", lambda: {"forward.cu": "this is no kernel"})
    with pytest.raises(CompileError, match="error"):
        build.compile_kernel(KernelVariant(tiny_config(), Grouping.CHANNEL, 1, "sm_89"))


def test_no_header_of_cuda_is_included() -> None:
    for name, text in build.sources().items():
        included = re.findall(r"#include\s+(\S+)", text)
        assert all(i.strip('"') in build.sources() for i in included), name
