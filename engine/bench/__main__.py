# SPDX-License-Identifier: Apache-2.0
"""python -m engine.bench MODEL [--device auto|cpu|cuda] [--runs 50] [--check] [--no-peer]

Prints one JSON object. Progress goes to standard error.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from engine.backend import Backend
from engine.bench import check, timing
from engine.bench.checkout import commit_of_checkout
from engine.bench.peer import PeerMissingError, TransformersPeer
from engine.bench.sensors import Gpu, processor
from engine.cuda.backend import CudaBackend
from engine.devices import DEVICES, Placed, kernel_folder, packed_model, place
from engine.errors import EngineError
from engine.formats import open_model
from engine.formats.source import ModelSource
from engine.messages import Device
from engine.tokenizer import Tokenizer

EXIT_MISMATCH: Final = 1
EXIT_NOT_MEASURED: Final = 2
_CONTEXT: Final = 256
# Written for this measurement; plain English, more than 128 tokens in every vocabulary we know.
_TEXT: Final = (
    "The keyboard had been on the desk for as long as anyone in the office could remember. Its keys were "
    "worn smooth in the middle and still sharp at the edges, and the small display above them showed one "
    "line of text at a time. In the morning it said what the weather would be. In the afternoon it waited. "
    "Nobody had asked it to do either, but when it was taken away for a week to be cleaned, three people "
    "wrote to ask where it had gone, and one of them offered to buy it. So it came back, with a new cable "
    "and a label on the underside that read: please do not lend this to the people on the second floor, "
    "because they will want to keep it, and we have only the one."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure or check; 0: done, 1: the numbers are wrong, 2: it could not be measured."""
    parser = argparse.ArgumentParser(prog="engine.bench", description=__doc__)
    parser.add_argument("model", help="a model file or folder")
    devices = [Device.AUTO.value, Device.CPU.value, Device.CUDA.value]
    parser.add_argument("--device", choices=devices, default=Device.AUTO.value)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--check", action="store_true", help="numbers instead of times")
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="ours alone")
    options = parser.parse_args(arguments)
    try:
        result = _examine(options)
    except EngineError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        return EXIT_NOT_MEASURED
    print(json.dumps(result, indent=1))
    passed = all(part["passed"] for part in result.get("check", {}).values())
    return 0 if passed else EXIT_MISMATCH


def _examine(options: argparse.Namespace) -> dict[str, Any]:
    source = open_model(options.model)
    try:
        tokenizer = Tokenizer.from_spec(source.tokenizer)
        tokens = tokenizer.encode(_TEXT, add_special=True, parse_special=False)[: timing.PROMPT]
        if len(tokens) < timing.PROMPT:
            raise EngineError(f"the text has only {len(tokens)} tokens in this vocabulary")
        _say("loading the model")
        placed = place(source, _CONTEXT, Device(options.device), DEVICES)
        gpu = Gpu()
        result = _facts(options, source, placed, gpu)
        try:
            if options.check:
                result["check"] = _check(source, placed, tokens, options.runs)
            else:
                result |= _measure(placed, tokens, options.runs, gpu)
        finally:
            placed.backend.close()
        if options.peer and not options.check:
            result |= _peers(source, placed.device, tokens, options.runs, gpu)
        result["sensors_after"] = gpu.read()
        return result
    finally:
        source.close()


def _facts(
    options: argparse.Namespace, source: ModelSource, placed: Placed, gpu: Gpu
) -> dict[str, Any]:
    backend = placed.backend
    device = backend.facts.name if isinstance(backend, CudaBackend) else processor()["name"]
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit_of_checkout(),
        "python": platform.python_version(),
        "model": source.config.name or Path(options.model).name,
        "parameters": source.config.parameters,
        "backend": placed.device.value,
        "note": placed.note,
        "device": device,
        "driver": gpu.driver,
        "processor": processor(),
        "sensors_before": gpu.read(),
    }


def _measure(placed: Placed, tokens: list[int], runs: int, gpu: Gpu) -> dict[str, Any]:
    forward = _forward_of(placed.backend)
    _say("measuring requests")
    requests = timing.requests(forward, tokens, runs, gpu)
    _say("measuring after rests")
    return {"requests": requests, "after_rests": timing.after_rests(forward, tokens, runs)}


def _forward_of(backend: Backend) -> timing.Forward:
    # The GPU finds the best token itself; only the check needs its logits.
    return backend.best if isinstance(backend, CudaBackend) else backend.forward


def _peers(
    source: ModelSource, device: Device, tokens: list[int], runs: int, gpu: Gpu
) -> dict[str, Any]:
    if device is Device.CUDA:
        return _gpu_peers(source, runs)
    _say("measuring transformers")
    try:
        peer = TransformersPeer(source.path)
    except PeerMissingError as error:
        return {"peer_missing": str(error)}
    return {"peer": {"name": peer.name, "requests": timing.requests(peer, tokens, runs, gpu)}}


def _gpu_peers(source: ModelSource, runs: int) -> dict[str, Any]:
    """Doorbell and latency in each residency, and PyTorch in float16 if it has CUDA here."""
    from engine.cuda import bench
    from engine.cuda.layout import Tuning

    _say("measuring the residencies")
    model = packed_model(source)
    found: dict[str, Any] = {
        "gpu": bench.bench(
            model, kernel_folder(), runs, repeats=runs, prefixes=False, tuning=Tuning()
        )
    }
    try:
        import torch
    except ImportError:
        return found | {"peer_missing": "torch is not installed"}
    if not torch.cuda.is_available():
        return found | {"peer_missing": "this torch has no CUDA"}
    from engine.cuda import baseline

    _say("measuring PyTorch")
    return found | {"torch_fp16": baseline.measure(source.config, runs)}


def _check(source: ModelSource, placed: Placed, tokens: list[int], runs: int) -> dict[str, Any]:
    from engine.reference.backend import ReferenceBackend

    limits = check.LIMITS[placed.device]
    step = 1 if placed.device is Device.CUDA else 8  # on the CPU each takes a fifth of a second
    backend, prefixes = placed.backend, range(1, timing.PROMPT, step)
    _say("checking step by step against in one go")
    found = {"incremental": check.incremental(backend, tokens, prefixes, limits)}
    _say("checking that it is the same every time")
    found["repeated"] = check.repeated(backend, tokens, runs)
    _say("checking against the reference")
    same_weights = source
    if placed.device is Device.CUDA:
        from engine.cuda.parity import QuantisedSource
        from engine.fp8.quantise import Grouping

        same_weights = QuantisedSource(source, Grouping.CHANNEL)
    reference = ReferenceBackend(same_weights, _CONTEXT)
    found["reference"] = check.against_reference(backend, reference, tokens, limits)
    return found


def _say(text: str) -> None:
    print(f"{text} …", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
