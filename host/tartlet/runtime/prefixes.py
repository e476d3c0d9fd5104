"""Prefixes that the operator publishes in the engine, for the runs of all tenants to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from tartlet.errors import ConfigError, EngineStoppedError, RunCancelledError, TartletError
from tartlet.runtime.engine_link import EngineLink
from tartlet_engine.api import Event, Failed, ModelText, PublishPrefix, UnpublishPrefix

_ROLES = ("system", "user", "assistant")


def prefix_tokens(text: ModelText, prefix: str | Sequence[int], role: str | None) -> list[int]:
    """Return the tokens of what is to be published: of a text, or of the first message of a chat if there is a role.

    Raises ConfigError if it is neither text nor token ids, or the model's chat template refuses the role.
    """
    if not isinstance(prefix, str):
        are_token_ids = isinstance(prefix, Sequence) and not isinstance(prefix, bytes | bytearray | memoryview)
        if role is None and are_token_ids and all(type(token_id) is int for token_id in prefix):
            return [*prefix]
        raise ConfigError(f"prefix must be a text, or token ids without a role, got {type(prefix).__name__}")
    if role not in (None, *_ROLES):
        raise ConfigError(f"role must be one of {', '.join(_ROLES)}, got {role!r}")
    try:
        return text.encode(prefix) if role is None else text.chat_message((), role, prefix)
    except ValueError as error:
        raise ConfigError(f"the prefix cannot be encoded: {error}") from error


class Prefixes:
    """What one host has published. On the executor's thread, but for `Future`s."""

    def __init__(self, link: EngineLink) -> None:
        self._link = link
        self._published: dict[int, _Publication] = {}
        self._known: set[int] = set()  # that can be unpublished; from any thread, an operation at a time

    def publish(self, token_ids: Sequence[int], adapter: str | None, future: Future[int]) -> None:
        """Let the engine compute and keep a prefix; the future's result is its number, or an error."""
        publication = _Publication(self, self._link.new_id(), future)
        self._published[publication.prefix_id] = publication
        self._known.add(publication.prefix_id)
        self._link.register(publication.prefix_id, publication)
        self._link.submit(PublishPrefix(publication.prefix_id, tuple(token_ids), adapter), None)

    def give_up(self, prefix_id: int) -> None:
        """Take note that `unpublish` follows. From any thread. Raises ConfigError if there is none of this number."""
        try:
            self._known.remove(prefix_id)
        except KeyError:
            hint = "Give the number that `publish_prefix` returned, once."
            raise ConfigError(f"no prefix of the number {prefix_id} is published", hint=hint) from None

    def unpublish(self, prefix_id: int) -> None:
        """Let go of a prefix. No effect if it is none of these."""
        self._known.discard(prefix_id)
        if prefix_id in self._published:
            self._link.submit(UnpublishPrefix(prefix_id), None)
            self.end(prefix_id, RunCancelledError("the prefix was unpublished before it was computed"))

    def forget(self, prefix_id: int) -> None:
        """Take note that it cannot be unpublished any more: it never was published."""
        self._known.discard(prefix_id)

    def end(self, prefix_id: int, error: TartletError) -> None:
        """Forget a prefix; if it is still being computed, that fails."""
        publication = self._published.pop(prefix_id)
        self._link.unregister_run(publication)
        if not publication.future.done():
            publication.future.set_exception(error)

    def close(self) -> None:
        """Let go of all, because the host closes: the engine may serve on."""
        for prefix_id in list(self._published):
            self.unpublish(prefix_id)

    def stop(self, error: EngineStoppedError) -> None:
        """Forget all, because the engine is gone."""
        for prefix_id in list(self._published):
            self.end(prefix_id, error)


class _Publication:
    """One prefix, and who waits until it is published."""

    def __init__(self, prefixes: Prefixes, prefix_id: int, future: Future[int]) -> None:
        self.prefix_id = prefix_id
        self.future = future
        self._prefixes = prefixes

    @property
    def run(self) -> _Publication:
        """It belongs to no run, and stands for one."""
        return self

    def wake(self) -> None:
        """No program waits for it."""

    def handle(self, event: Event, at_ns: int) -> None:
        """Take in that it is published, or has failed."""
        if isinstance(event, Failed):
            error = event.error
            self._prefixes.forget(self.prefix_id)
            self._prefixes.end(self.prefix_id, ConfigError(f"cannot publish: {error.message}", hint=error.hint))
        elif self.future.set_running_or_notify_cancel():
            self.future.set_result(self.prefix_id)
        else:
            self._prefixes.unpublish(self.prefix_id)  # nobody waits for it any more, nor could unpublish it
