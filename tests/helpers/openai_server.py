# SPDX-License-Identifier: Apache-2.0
"""A server with the OpenAI API and no model, as a process: python -m tests.helpers.openai_server KIND.

It prints its port, and answers until its standard input ends. KINDs: `vllm` and `llama` differ in how they
tell log-probabilities, `bare` tells none; the others misbehave as their branches say. GET /stats counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

KEY = "sesame"
REPLY = ["Cats", " sleep", " a", " lot", " — 猫", "."]
TICK_S = 0.02
_ROOT = Path(__file__).resolve().parents[2]
_CHANCES = {" the": -0.7, " ca": -1.6, " a": -2.3, "s": -3.0, "\n": -3.5}
_OPEN = {"e": -0.5, "is": -1.5, " cat": -2.5, "at": -3.0}


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    kind = "vllm"
    asked = 0
    left = 0

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/stats":
            self._json({"asked": Handler.asked, "left": Handler.left})
        elif self.path == "/v1/models" and self._may():
            if self.kind == "empty":
                self._json({"data": []})
            elif self.kind == "garbage":
                self._raw(b"<html>welcome</html>")
            elif self.kind == "elsewhere":
                self.send_response(302)
                self.send_header("Location", "http://127.0.0.1:9/v1/models")
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                self._json({"data": [{"id": "tiny", "max_model_len": 512}, {"id": "other"}]})
        elif self.path != "/v1/models":
            self.send_error(404)

    def do_POST(self) -> None:
        Handler.asked += 1
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._may():
            return
        is_chat = self.path == "/v1/chat/completions"
        if self.kind == "quotes" and (is_chat or body["prompt"] != "The"):
            self._raw(json.dumps({"error": {"message": f"cannot do {body}"}}).encode(), 500)
        elif body.get("stream"):
            self._stream(is_chat, body["max_tokens"])
        elif is_chat:
            self._json({"choices": [self._choice(body)]})
        else:
            self._json({"choices": [self._completion(body)]})

    def _may(self) -> bool:
        if self.kind != "locked" or self.headers["Authorization"] == f"Bearer {KEY}":
            return True
        self.send_error(401)
        return False

    def _completion(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt = body["prompt"]
        if "logprobs" not in body:
            return {
                "text": "t sat down and" if prompt.endswith(" ca") else " end of it",
                "index": 0,
            }
        chances = _OPEN if prompt.endswith("th") else _CHANCES
        return {"text": next(iter(chances)), "logprobs": self._logprobs(chances, body["logprobs"])}

    def _choice(self, body: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": "Calm, I think."}
        told = {"C": -0.4, "ang": -1.4, "?": -2.0}
        return {"message": message, "logprobs": self._logprobs(told, body.get("top_logprobs", 0))}

    def _logprobs(self, chances: dict[str, float], most: int) -> Any:
        if self.kind == "bare" or not most:
            return None
        if self.kind == "llama" or self.path == "/v1/chat/completions":
            tops = [{"token": t, "logprob": p} for t, p in list(chances.items())[:most]]
            return {"content": [tops[0] | {"top_logprobs": tops}]}
        return {"top_logprobs": [dict(list(chances.items())[:most])]}

    def _stream(self, is_chat: bool, most: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        endless = self.kind in ("endless", "mute")
        try:
            for count, piece in enumerate(REPLY * (1000 if endless else 1)):
                while self.kind == "mute" and count:
                    time.sleep(TICK_S)
                    self._chunk(b": still here\n\n")
                if count == most or (self.kind == "drops" and count == 2):
                    break
                self._event(is_chat, piece, None)
                time.sleep(TICK_S)
            if self.kind == "drops":
                self.close_connection = True
                return
            self._event(is_chat, "", "length" if count == most else "stop")
            self._chunk(b"data: [DONE]\n\n")
            self._chunk(b"")
        except OSError:
            Handler.left += 1
            self.close_connection = True

    def _event(self, is_chat: bool, piece: str, reason: str | None) -> None:
        text: dict[str, Any] = {"delta": {"content": piece}} if is_chat else {"text": piece}
        event = {"choices": [text | {"index": 0, "finish_reason": reason}]}
        self._chunk(f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode())

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _json(self, value: Any) -> None:
        self._raw(json.dumps(value).encode())

    def _raw(self, data: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def openai_server(kind: str) -> Iterator[int]:
    """The process, ended at the end; gives its port."""
    argv = (sys.executable, "-m", "tests.helpers.openai_server", kind)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=_ROOT) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            yield int(child.stdout.readline())
        finally:
            child.stdin.close()
            child.wait(10)


def stats(port: int) -> dict[str, int]:
    """How often the server was asked, and how often it was left in the middle."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/stats")
    counts: dict[str, int] = json.loads(connection.getresponse().read())
    connection.close()
    return counts


def main(kind: str) -> None:
    """Serve until standard input ends."""
    Handler.kind = kind
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
