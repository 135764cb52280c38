# SPDX-License-Identifier: Apache-2.0
"""A companion to be killed: starts an engine child in mid reply, prints its process id, and waits."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from engine.messages import Chat, ReplyGrew, Turn
from tests.helpers.engines import Supervised, argv_for

if __name__ == "__main__":
    model = Path(sys.argv[1])
    talk = Supervised(argv_for(model))
    talk.start(model)
    turns = [Turn(role="user", content="Tell me a very long story.")]
    talk.send(Chat(request=1, turns=turns, max_tokens=1000))
    assert isinstance(talk.next(), ReplyGrew)
    print(talk.client.pid, flush=True)
    time.sleep(600)
