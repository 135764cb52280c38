# SPDX-License-Identifier: Apache-2.0
"""The engine child process: takes commands from its parent, answers with events, ends with its parent.

The reader thread only reads: it marks jobs as cancelled and ends the process. The main thread carries
the commands out one after the other and writes events; a third one tells that it gets on (pulse.py).
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from typing import TypeAlias

from engine.channel import AUTHKEY_BYTES, Channel, ChannelClosedError, ChannelError
from engine.childlog import log_error, set_up_child_logging
from engine.devices import devices_with, on_the_cpu
from engine.errors import DeviceError, EngineError, EngineUnavailableError
from engine.inbox import Inbox, Job
from engine.messages import (
    COMMANDS,
    PROTOCOL_VERSION,
    Alive,
    Chat,
    Choose,
    Command,
    Complete,
    Device,
    Event,
    Failed,
    Forget,
    Forgotten,
    Hello,
    LabelChosen,
    LoadModel,
    ModelLoaded,
    Prepare,
    Prepared,
    ReplyFinished,
    ReplyGrew,
    ReplyReady,
    Shutdown,
    Suggest,
    SuggestionsReady,
)
from engine.priority import give_way
from engine.pulse import Pulse
from engine.serving import Beginning, Choice, LoadedModel, Reply, Suggestions
from engine.texts import Text

if sys.platform != "win32":
    import resource

EXIT_DONE = 0
EXIT_NOT_CONNECTED = 3
EXIT_PROTOCOL = 4
EXIT_INTERNAL = 5
# Of a reply that is computed ahead. Whoever holds it works 0.5 ms on each news, and a trigger that falls
# into that waits: with news of every token, 27 ms apart, 1 of 50 triggers. What was not told
# comes without being computed again when the reply is asked for.
_TELL_EVERY_S = 0.25

Loader: TypeAlias = Callable[[LoadModel], LoadedModel]

_log = logging.getLogger("engine.server")  # not __name__, which is __main__ here


def main(argv: Sequence[str] | None = None) -> int:
    """Serve the parent that gave us `--address`, and on stdin the key to it."""
    parser = argparse.ArgumentParser(
        prog="thock-engine", description="The engine process of thock, which starts it."
    )
    parser.add_argument("--address", required=True, help="where the parent listens")
    parser.add_argument("--fake", action="store_true", help="scripted replies, no model")
    options = parser.parse_args(argv)
    set_up_child_logging()
    # Ctrl-C in the terminal is for the companion, which then ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        # The keyboard's threads in the companion come first; on an idle machine this costs nothing. On
        # Windows the parent starts us with a lower priority. Before any thread starts: threads inherit it.
        give_way()
        # A core file would write everything that was typed lately to the disk.
        # 1, not 0: see app.log.forbid_core_dumps; Linux holds 0 against files only.
        resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
    key = sys.stdin.buffer.read(AUTHKEY_BYTES)
    if len(key) != AUTHKEY_BYTES:
        _log.error("no key on stdin: thock starts this program, nobody else can")
        return EXIT_NOT_CONNECTED
    try:
        channel = Channel(Client(options.address, authkey=key), COMMANDS)
        channel.send(Hello(protocol=PROTOCOL_VERSION, pid=os.getpid()))
    except (OSError, EOFError, AuthenticationError, AssertionError, ChannelError) as error:
        # AssertionError: how Python 3.11 refuses a challenge that is none.
        _log.error("cannot connect to the parent: %s", type(error).__name__)
        return EXIT_NOT_CONNECTED
    # os._exit, because the main thread may be deep in a matrix product or an import when the parent
    # leaves; there is nothing to flush and no file to close.
    load = _load_fake if options.fake else _load_model
    serve(channel, load, leave=os._exit, is_elsewhere=options.fake)
    return EXIT_DONE


def serve(
    channel: Channel[Command],
    load: Loader,
    leave: Callable[[int], object],
    *,
    is_elsewhere: bool = False,
) -> None:
    """Carry out commands until the channel ends or Shutdown comes; then `leave` gets the exit code.

    `leave` is called on the reader's thread, also while a command is being carried out. `is_elsewhere`: the
    models of `load` do not compute in this process.
    """
    inbox = Inbox()
    reader = threading.Thread(
        target=_read_commands, args=(channel, inbox, leave), name="engine-reader", daemon=True
    )
    reader.start()
    pulse = Pulse(lambda request: channel.send(Alive(request=request)))
    pulse.is_elsewhere = is_elsewhere
    pulse.start()
    worker = _Worker(channel, load)
    try:
        while (job := inbox.take()) is not None:
            if isinstance(job.command, LoadModel):
                pulse.is_elsewhere = is_elsewhere or job.command.device is Device.REMOTE
            pulse.watch(job)
            worker.do(job)
            pulse.watch(None)
    except ChannelClosedError:
        pass  # the reader sees the same end and leaves
    finally:
        pulse.close()
        worker.close()
    reader.join()


def _read_commands(channel: Channel[Command], inbox: Inbox, leave: Callable[[int], object]) -> None:
    code = EXIT_DONE
    try:
        while not isinstance(command := channel.receive(), Shutdown):
            inbox.put(command)
    except ChannelClosedError:
        pass  # the parent is gone: so are we
    except ChannelError as error:
        _log.error("%s", error)
        code = EXIT_PROTOCOL
    except Exception as error:  # noqa: BLE001  the thread's top
        log_error("the reader failed", error)
        code = EXIT_INTERNAL
    inbox.close()
    leave(code)


class _Worker:
    """Carries out one job at a time with the model that is loaded, on the CPU once the GPU has failed."""

    def __init__(self, channel: Channel[Command], load: Loader) -> None:
        self._channel = channel
        self._load = load
        self._model: LoadedModel | None = None
        self._load_command: LoadModel | None = None
        self._has_told = False  # a part of the answer to the present job is on its way

    def do(self, job: Job) -> None:
        """Carry out `job`; whatever happens, it is answered.

        Raises:
            ChannelClosedError: nobody is there to be answered.
        """
        request = job.command.request
        try:
            self._channel.send(self._answer_somehow(job))
        except ChannelClosedError:
            raise
        except EngineError as error:
            self._channel.send(Failed(request=request, code=error.code, message=str(error)))
        except MemoryError:
            message = Text("not enough memory for this request")
            self._channel.send(Failed(request=request, code="out-of-memory", message=message))
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  a panic in a Rust library is no Exception
            log_error(f"a {job.command.type} command failed", error)
            message = Text(
                "unexpected {error} in the engine; its log says where", error=type(error).__name__
            )
            self._channel.send(Failed(request=request, code="internal", message=message))

    def close(self) -> None:
        """Free the model."""
        if self._model is not None:
            self._model.close()
            self._model = None

    def _answer_somehow(self, job: Job) -> Event:
        """The answer of the device, or if that fails of the CPU; not of both, so nobody reads half of each."""
        self._has_told = False
        try:
            return self._answer(job)
        except DeviceError as error:
            load = self._load_command
            if self._model is None or load is None or load.device is Device.CPU:
                raise
            self._move_to_cpu(load, error)
            if self._has_told:
                raise
        return self._answer(job)

    def _move_to_cpu(self, load: LoadModel, error: DeviceError) -> None:
        _log.warning("the device failed (%s): the model goes to the CPU", error.code)
        reason = on_the_cpu(Text("the GPU failed, {reason}", reason=error))
        cpu = load.model_copy(update={"device": Device.CPU, "reason": reason})
        try:
            self._channel.send(self._load_model(cpu, time.perf_counter()))
        except EngineError as failure:
            # The parent ends us: without any model there is nothing to do here.
            message = Text("{reason}; and there: {failure}", reason=reason, failure=failure)
            self._channel.send(Failed(request=load.request, code=failure.code, message=message))
            raise

    def _answer(self, job: Job) -> Event:
        start = time.perf_counter()
        match job.command:
            case LoadModel() as command:
                return self._load_model(command, start)
            case Suggest(request=request, text=text, count=count, words=words):
                found = Suggestions((), 0, 0, cancelled=True)
                if not job.cancelled():
                    found = self._loaded().suggest(text, count, job.cancelled, words)
                return SuggestionsReady(
                    request=request,
                    candidates=list(found.candidates),
                    reused=found.reused,
                    computed=found.computed,
                    milliseconds=_since(start),
                    cancelled=found.cancelled,
                )
            case Chat() | Complete() as command:
                return self._reply(command, job, start)
            case Prepare() as command:
                return self._prepare(command, job)
            case Choose(request=request, turns=turns, labels=labels):
                choice = Choice("", 0.0, cancelled=True)
                if not job.cancelled():
                    choice = self._loaded().choose(turns, labels, job.cancelled)
                return LabelChosen(
                    request=request,
                    label=choice.label,
                    probability=choice.probability,
                    milliseconds=_since(start),
                    cancelled=choice.cancelled,
                )
            case Forget(request=request):
                if self._model is not None:
                    self._model.forget()
                return Forgotten(request=request)

    def _reply(self, command: Chat | Complete, job: Job, start: float) -> ReplyFinished:
        def emit(text: str) -> None:
            self._has_told = True
            self._channel.send(ReplyGrew(request=command.request, text=text))

        reply = Reply("cancelled", 0, 0.0)
        if not job.cancelled():
            reply = self._loaded().answer(command, job.cancelled, emit)
        return ReplyFinished(
            request=command.request,
            reason=reply.reason,
            tokens=reply.tokens,
            first_token_ms=reply.first_token_ms,
            milliseconds=_since(start),
        )

    def _prepare(self, command: Prepare, job: Job) -> Prepared:
        """The first token at once; those after it only if nothing else came in the meantime."""
        if not job.cancelled():
            rest_s = command.rest_ms / 1000.0
            beginnings = self._loaded().prepare(command.ask, job.cancelled)
            told, untold = float("-inf"), None
            for count, beginning in enumerate(beginnings):
                untold = beginning
                if time.perf_counter() - told >= _TELL_EVERY_S:
                    self._tell_ready(command, beginning)
                    told, untold = time.perf_counter(), None
                if count == command.ahead or job.cancelled_within(0.0 if count else rest_s):
                    break
            if untold is not None and not job.cancelled():
                self._tell_ready(command, untold)
        rows = self._loaded().rows
        computed, wasted = rows.take()
        return Prepared(
            request=command.request, computed=computed, wasted=wasted, cancelled=job.cancelled()
        )

    def _tell_ready(self, command: Prepare, beginning: Beginning) -> None:
        self._has_told = True
        self._channel.send(
            ReplyReady(
                request=command.request,
                context=command.context,
                text=beginning.text,
                tokens=list(beginning.tokens),
                is_whole=beginning.is_whole,
            )
        )

    def _load_model(self, command: LoadModel, start: float) -> ModelLoaded:
        self.close()  # first, because both may not fit
        self._load_command = command
        self._model = self._load(command)
        info = self._model.info
        _log.info("model loaded in %.1f s, backend %s", time.perf_counter() - start, info.backend)
        return ModelLoaded(
            request=command.request,
            name=command.title or info.name,
            parameters=info.parameters,
            context_length=info.context_length,
            window=info.window,
            backend=info.backend,
            seconds=time.perf_counter() - start,
            note=command.reason or info.note,
        )

    def _loaded(self) -> LoadedModel:
        if self._model is None:
            raise EngineUnavailableError("no model is loaded: send a load-model command first")
        return self._model


def _since(start: float) -> float:
    return (time.perf_counter() - start) * 1000.0


def _load_model(command: LoadModel) -> LoadedModel:
    if command.device is Device.REMOTE:
        from engine.remote.model import RemoteModel

        return RemoteModel.open(command.server, command.max_context, command.window)
    # Here, because the tokenizers take a second and memory that the others can do without.
    from engine.runner import ModelRunner

    return ModelRunner.open(
        command.path, command.max_context, command.window,
        device=command.device, devices=devices_with(command.residency),
    )  # fmt: skip


def _load_fake(command: LoadModel) -> LoadedModel:
    from engine.fake import FakeModel

    return FakeModel.open(command.path, command.max_context, command.window)


if __name__ == "__main__":
    sys.exit(main())
