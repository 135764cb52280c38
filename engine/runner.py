# SPDX-License-Identifier: Apache-2.0
"""A model file behind the commands of the engine child: tokeniser, template, backend and session together.

There is one session, so one KV cache. All commands keep the prefix that they share with what was computed
last: the text typed so far, or the instructions and earlier turns of a chat. Changing between them computes
the new prompt from its start, which people do when they change the mode, seldom.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence

from engine.chat_template import ChatTemplate
from engine.devices import DEVICES, Devices, Placed, place
from engine.errors import DeviceError, EngineError, OperationCancelledError
from engine.formats import open_model
from engine.ledger import RowLedger
from engine.messages import DEFAULT_WINDOW, Candidate, Chat, Complete, Device, Turn
from engine.phrases import choose_candidates, extend_words
from engine.reply import GrowingReply
from engine.serving import Beginning, CancelCheck, Choice, ModelInfo, Reply, Suggestions
from engine.session import FinishReason, Session
from engine.streaming import StreamDecoder
from engine.tokenizer import Tokenizer
from engine.vocabulary import Vocabulary
from engine.window import TokenWindow, fit_turns
from engine.words import WordSuggestions, suggest_words, with_start

# Positions behind the window for what does not belong to the text: BOS and the tokens tried by a search.
_SEARCH_TOKENS = 8

_log = logging.getLogger(__name__)


class ModelRunner:
    """A LoadedModel on the device where it was placed. For one thread."""

    def __init__(
        self,
        placed: Placed,
        tokenizer: Tokenizer,
        template: ChatTemplate,
        *,
        window: int = DEFAULT_WINDOW,
    ) -> None:
        self._placed = placed
        self._backend = backend = placed.backend
        self._tokenizer = tokenizer
        self._template = template
        self._vocabulary = Vocabulary(tokenizer)
        self._session = Session(backend, tokenizer.vocab_size)
        room = max(2, backend.max_context - _SEARCH_TOKENS)
        if room < window:
            context = backend.max_context
            _log.info("suggestions see %d tokens: the context holds %d", room, context)
        self._seen = min(window, room)
        self._window = TokenWindow(self._seen, max(1, self._seen // 4))
        self._prepared: GrowingReply | None = None
        self._found: tuple[tuple[str, int], WordSuggestions] | None = None

    @classmethod
    def open(
        cls,
        path: str,
        max_context: int,
        window: int = DEFAULT_WINDOW,
        *,
        device: Device = Device.CPU,
        devices: Devices = DEVICES,
    ) -> ModelRunner:
        """Load the model at `path`: a GGUF file or a Hugging Face folder.

        `window` is the number of tokens of typed text that suggestions are made from; where the context has
        no room for them, `info.window` is less. A model that cannot run on the GPU runs on the CPU, and
        `info.note` says why.

        Raises:
            ModelNotFoundError, ModelFileError, UnsupportedModelError, TemplateError, OutOfMemoryError.
        """
        source = open_model(path)
        try:
            tokenizer = Tokenizer.from_spec(source.tokenizer)
            template = ChatTemplate.from_spec(source.tokenizer)
            placed = place(source, max_context, device, devices)
        finally:
            source.close()
        return cls(placed, tokenizer, template, window=window)

    @property
    def info(self) -> ModelInfo:
        config = self._backend.config
        name = config.name or config.architecture
        where, note = self._placed.device.value, self._placed.note
        context = self._backend.max_context
        return ModelInfo(name, config.parameters, context, where, self._seen, note)

    @property
    def rows(self) -> RowLedger:
        """As LoadedModel.rows."""
        return self._session.rows

    def suggest(self, text: str, count: int, cancelled: CancelCheck, words: int = 1) -> Suggestions:
        """As LoadedModel.suggest. Phrases begin with the words that were found for the same text last."""
        session, vocabulary, cut = self._session, self._vocabulary, self._window.cut
        try:
            if words == 1 or self._found is None or self._found[0] != (text, count):
                self._found = None
                found = suggest_words(session, vocabulary, text, count, cancelled, cut)
                self._found = (text, count), found
            found = self._found[1]
            chosen, computed = found.candidates, found.computed
            if words > 1:
                phrases, computed = extend_words(
                    session, vocabulary, text, found.candidates, words, cancelled, cut
                )
                chosen = choose_candidates(found.candidates, phrases, count)
        except OperationCancelledError:
            return Suggestions((), 0, 0, cancelled=True)
        candidates = [Candidate(text=c.text, probability=c.probability) for c in chosen]
        return Suggestions(candidates, found.reused, computed)

    def answer(
        self, ask: Chat | Complete, cancelled: CancelCheck, emit: Callable[[str], None]
    ) -> Reply:
        """As LoadedModel.answer."""
        start = time.perf_counter()
        reply, self._prepared = self._reply_to(ask), None
        decoder = StreamDecoder(self._tokenizer, continuation=isinstance(ask, Complete))
        for token in ask.begun:
            decoder.push(token)
        known = reply.tokens[len(ask.begun) : ask.max_tokens]
        text = "".join(map(decoder.push, known))
        if text:
            emit(text)
        tokens = len(known)
        first_token_ms = _since(start) if tokens else 0.0
        rest = reply.grow(ask.max_tokens, cancelled)
        while True:
            try:
                token = next(rest)
            except StopIteration as end:
                reason: FinishReason = end.value
                break
            except OperationCancelledError:
                return Reply("cancelled", tokens, first_token_ms)
            tokens += 1
            if tokens == 1:
                first_token_ms = _since(start)
            if text := decoder.push(token):
                emit(text)
        if text := decoder.finish():
            emit(text)
        return Reply(reason.value, tokens, first_token_ms)

    def prepare(self, ask: Chat | Complete, cancelled: CancelCheck) -> Iterator[Beginning]:
        """As LoadedModel.prepare."""
        reply = self._prepared = self._reply_to(ask)
        decoder = StreamDecoder(self._tokenizer, continuation=isinstance(ask, Complete))
        text = "".join(map(decoder.push, reply.tokens))
        if reply.tokens:
            yield Beginning(text, reply.tokens, reply.is_whole)
        rest = reply.grow(ask.max_tokens, cancelled, ahead=True)
        try:
            for token in rest:
                text += decoder.push(token)
                yield Beginning(text, reply.tokens, is_whole=False)
        except OperationCancelledError:
            return
        if reply.is_whole:
            yield Beginning(text + decoder.finish(), reply.tokens, is_whole=True)

    def choose(
        self, turns: Sequence[Turn], labels: Sequence[str], cancelled: CancelCheck
    ) -> Choice:
        """As LoadedModel.choose."""
        if not all(labels) or len(set(labels)) < len(labels):
            raise EngineError("the labels to choose from must differ, and none may be empty")
        encoded = [
            self._tokenizer.encode(label, add_special=False, parse_special=False)
            for label in labels
        ]
        prompt = self._prompt(turns, max(map(len, encoded)))
        try:
            self._session.update(prompt, cancelled)
            index, probabilities = self._session.choose(encoded, cancelled)
        except OperationCancelledError:
            return Choice("", 0.0, cancelled=True)
        return Choice(labels[index], probabilities[index])

    def forget(self) -> None:
        """As LoadedModel.forget."""
        self._session.forget()
        self._window.forget()
        self._prepared = None
        self._found = None

    def close(self) -> None:
        """As LoadedModel.close."""
        try:
            self.forget()
        except DeviceError as error:
            # Memory of a lost device cannot be overwritten; the driver gives it to nobody unwiped.
            _log.info("the cache went with its device: %s", error.code)
        self._backend.close()

    def _reply_to(self, ask: Chat | Complete) -> GrowingReply:
        """The reply that was prepared last if it is one to `ask`, else a new one."""
        match ask:
            case Chat(turns=turns, max_tokens=most):
                # Half of the context at most is kept free for the reply.
                prompt = self._prompt(turns, min(most, self._backend.max_context // 2))
            case Complete(text=text):
                tokens = self._tokenizer.encode(text, add_special=False, parse_special=False)
                prompt = with_start(self._tokenizer, self._window.cut(tokens))
        if self._prepared is not None and self._prepared.answers(prompt, ask.begun):
            return self._prepared
        return GrowingReply(self._session, self._tokenizer.eos_ids, prompt, ask.begun)

    def _prompt(self, turns: Sequence[Turn], reserved: int) -> list[int]:
        """Tokens of the newest turns that leave `reserved` positions free."""

        def encode(kept: Sequence[Turn]) -> list[int]:
            return self._template.encode(kept, self._tokenizer)

        limit = self._backend.max_context - reserved
        return encode(fit_turns(turns, lambda kept: len(encode(kept)), limit))


def _since(start: float) -> float:
    return (time.perf_counter() - start) * 1000.0
