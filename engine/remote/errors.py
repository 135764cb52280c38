# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a server. No message holds what was sent, nor the body of an answer: servers
like to quote the prompt there.
"""

from __future__ import annotations

from engine.errors import EngineError
from engine.texts import Text, as_text


class RemoteError(EngineError):
    """Base of the errors below."""

    code = "remote"


class RemoteSettingsError(RemoteError):
    """The address, the model or the key file in the settings cannot be used."""

    code = "remote-settings"


class RemoteUnreachableError(RemoteError):
    """The server does not answer, or went away in the middle."""

    code = "remote-unreachable"


class RemoteRefusedError(RemoteError):
    """The server answered with an error. `status` is that of HTTP."""

    code = "remote-refused"

    def __init__(self, where: str, status: int) -> None:
        advice = {
            401: "it wants a key, or another one",
            403: "the key may not do this",
            404: "is the address right? It often ends with /v1",
        }.get(status, "its log may say why")
        super().__init__(
            Text(
                "{where} answered with HTTP status {status}: {advice}",
                where=where,
                status=status,
                advice=as_text(advice),
            )
        )
        self.status = status


class RemoteAnswerError(RemoteError):
    """The answer is not what the API promises."""

    code = "remote-answer"
