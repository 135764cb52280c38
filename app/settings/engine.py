# SPDX-License-Identifier: Apache-2.0
"""The server that computes in place of this computer, for those who have one."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from app.settings.base import Group
from engine.messages import RemoteServer

WEB_ADDRESS = r"^(?:https?://[A-Za-z0-9._\-\[\]:]+(?:/[A-Za-z0-9._~/\-]*)?)?$"


class RemoteSettings(Group):
    """A server with the OpenAI API, such as vLLM or llama.cpp. Used only while the engine is `remote`."""

    url: str = Field(
        default="", max_length=256, pattern=WEB_ADDRESS,
        title="Address",
        description="Of a server with the OpenAI API; it often ends with /v1. What you type goes there while "
        "it is chosen. For another computer, use https.",
    )  # fmt: skip
    model: str = Field(
        default="", max_length=256,
        title="Model of the server",
        description="As the server names it. Empty: the first that it offers.",
    )  # fmt: skip
    key_file: Path | None = Field(
        default=None,
        title="File with the key",
        description="A file that holds the key of the server, if it wants one.",
    )

    def server(self) -> RemoteServer:
        """In the words of the engine."""
        key_file = None if self.key_file is None else str(self.key_file.expanduser().absolute())
        return RemoteServer(url=self.url, model=self.model, key_file=key_file)
