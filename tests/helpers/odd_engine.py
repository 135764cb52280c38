# SPDX-License-Identifier: Apache-2.0
"""An engine child that misbehaves: python -m tests.helpers.odd_engine KIND --address ADDRESS."""

from __future__ import annotations

import json
import os
import sys
import time
from multiprocessing.connection import Client

from engine.childlog import LOG_PREFIX
from engine.messages import PROTOCOL_VERSION


def main(kind: str, address: str) -> None:
    key = sys.stdin.buffer.read(32)
    if kind == "breaks-at-once":
        sys.exit("cannot find libsomething.so")
    if kind == "never-connects":
        time.sleep(60)
    connection = Client(address, authkey=key)
    if kind == "never-speaks":
        time.sleep(60)
    hello = {"type": "hello", "protocol": PROTOCOL_VERSION, "pid": os.getpid()}
    if kind == "other-version":
        hello["protocol"] = PROTOCOL_VERSION + 1
    connection.send_bytes(json.dumps(hello).encode())
    load = json.loads(connection.recv_bytes())
    if kind == "speaks-garbage":
        connection.send_bytes(b"\x80\x04garbage")
        time.sleep(60)
    loaded = {
        "type": "model-loaded",
        "request": load["request"],
        "name": "odd",
        "parameters": 0,
        "context_length": 16,
        "backend": "odd",
        "seconds": 0.0,
    }
    if kind.startswith("gpu-kills"):
        on_gpu = load["device"] != "cpu"
        loaded |= {"backend": "cuda" if on_gpu else "cpu", "note": load["reason"]}
        if on_gpu and kind == "gpu-kills-loading":
            os._exit(7)
    connection.send_bytes(json.dumps(loaded).encode())
    command = json.loads(connection.recv_bytes())
    if kind == "gpu-kills-computing":
        os._exit(7)
    if kind == "quotes-and-dies":
        print(f"thread panicked at {command['text']!r}", file=sys.stderr, flush=True)
        print(f"{LOG_PREFIX} ERROR engine.server: all is lost", file=sys.stderr, flush=True)
        os._exit(7)
    if kind == "answers-strangely":
        for request in (command["request"] + 1, command["request"], command["request"]):
            forgotten = {"type": "forgotten", "request": request}
            connection.send_bytes(json.dumps(forgotten).encode())
    time.sleep(60)  # deaf, also to Shutdown


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[3])
