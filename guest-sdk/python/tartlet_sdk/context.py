"""Contexts: sequences of tokens whose keys and values live in pages of the shared KV cache."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tartlet_sdk import checks, event_loop, scoring, verification, wit
from tartlet_sdk.constraint import Constraint, constraint_of
from tartlet_sdk.controlled import ControlledGeneration
from tartlet_sdk.draft import TokenLogprob
from tartlet_sdk.errors import InvalidArgument
from tartlet_sdk.forward import Ask, Pass, Row, compute
from tartlet_sdk.generation import Generation
from tartlet_sdk.host_call import call
from tartlet_sdk.mask import Mask, mask_id
from tartlet_sdk.sampler import Sampler
from tartlet_sdk.speculation import Speculation
from tartlet_sdk.steps import Steps
from tartlet_sdk.stop import StopCondition
from tartlet_sdk.stop import max_tokens as stop_after

if TYPE_CHECKING:
    from wit_world.imports import contexts as wit_contexts
    from wit_world.imports import models as wit_models

    from tartlet_sdk.model import Model

MOST_LOGPROBS = 20
MOST_TTL_S = 10 * 365 * 24 * 3600.0
CHUNK_INTERVAL_S = 0.03
"""Thirty chunks a second: as often as anybody can see."""
LONGEST_CHUNK_INTERVAL_S = 3600.0


@dataclass(frozen=True, slots=True)
class SavedContext:
    """What there is to know of a saved context."""

    name: str
    """What `Context.open` takes."""
    model: str
    """The name of the model that it was saved with."""
    adapter: str | None
    """The name of the adapter that it was made with."""
    tokens: int
    """Number of tokens."""
    bytes: int
    """What it takes of the tenant's quota."""
    expires_in: float | None
    """Seconds for which it is still kept; None: until it is deleted."""


class Context:
    """One sequence of tokens. Make one with `model.context()`, or `fork` another.

    Filling only appends tokens: they are computed when a generation, a fork or a flush needs them. While a generation
    runs on it, or a forward pass is neither committed nor discarded, a context is busy: it can be read and forked,
    everything else raises `Unavailable`. A context frees its pages when it is closed, left as a `with` block, or no
    longer referred to.
    """

    def __init__(self, handle: wit_contexts.Context, model: wit_models.Model) -> None:
        self._open_handle: wit_contexts.Context | None = handle
        self._model = model  # that it is one of

    def system(self, text: str) -> None:
        """Append a system message, in the form that the model's chat template gives it."""
        self._message("system", text)

    def user(self, text: str) -> None:
        """Append a message of the user."""
        self._message("user", text)

    def assistant(self, text: str) -> None:
        """Append a message of the assistant, as if the model had said it."""
        self._message("assistant", text)

    def tool(self, text: str) -> None:
        """Append the result of a tool call."""
        self._message("tool", text)

    def fill(self, text: str) -> None:
        """Append a text as it is. Special tokens written out in it become their ids."""
        call("Context.fill", self._handle("fill").fill, checks.text(text, "text", "Context.fill"))

    def fill_tokens(self, tokens: Iterable[int]) -> None:
        """Append token ids."""
        handle = self._handle("fill_tokens")
        call("Context.fill_tokens", handle.fill_tokens, checks.tokens(tokens, "tokens", "Context.fill_tokens"))

    def cue(self) -> None:
        """Begin the assistant's turn. A generation does so by itself after a chat message of another role."""
        call("Context.cue", self._handle("cue").cue)

    async def flush(self) -> None:
        """Compute what has been filled, and wait until that is done."""
        await event_loop.finish(call("Context.flush", self._handle("flush").flush), "Context.flush")

    def fork(self) -> Context:
        """Make a context with the same tokens, which shares the pages: nothing is copied or computed twice.

        What the two append afterwards does not concern the other.
        """
        return Context(call("Context.fork", self._handle("fork").fork), self._model)

    def truncate(self, length: int) -> None:
        """Drop the tokens after the first `length`."""
        handle = self._handle("truncate")
        call("Context.truncate", handle.truncate, checks.whole(length, "length", "Context.truncate"))

    async def evict(self, start: int, end: int) -> None:
        """Drop the tokens from `start` to before `end` out of the middle, and wait until that is done.

        Tokens that come later do not see them, as if they were masked; what is kept stays as it was computed. They
        still count for the context length. The last token must stay.

        Raises:
            InvalidArgument: The range is out of order, or has the last token.
            Unsupported: The model's features do not have `evict`.
            Unavailable: A generation runs on the context.
            KvExhausted: There are no pages for what moves; ranges of whole pages move least.
        """
        name = "Context.evict"
        span = checks.whole(start, "start", name), checks.whole(end, "end", name)
        await event_loop.finish(call(name, self._handle("evict").evict, *span), name)

    async def keep(self, *, first: int, last: int) -> None:
        """Evict all but the first and the last tokens, if there are more.

        With a few first tokens, on which models lean, and a window of last ones, a long generation costs the same for
        each token, in time and in pages.
        """
        checks.whole(first, "first", "Context.keep")
        checks.whole(last, "last", "Context.keep", 1)
        length = len(self)
        if length > first + last:
            await self.evict(first, length - last)

    async def save(self, name: str, *, ttl: float | None = None, overwrite: bool = False) -> None:
        """Save the context under a name, for this tenant's later runs, and wait until that is done.

        What has been filled is computed first, and kept: opening it again costs a read.

        Args:
            name: 1 to 128 letters, digits and `. _ : / -`; begins with a letter or a digit.
            ttl: Seconds for which it is kept; without it, until it is deleted.
            overwrite: Take the place of what is saved under that name.

        Raises:
            AlreadyExists: The name is taken, and `overwrite` was not asked for.
            QuotaExceeded: The tenant's saved contexts would take too much.
            Unavailable: A generation runs on the context.
        """
        checks.text(name, "name", "Context.save")
        if ttl is not None and checks.number(ttl, "ttl", "Context.save", 0, MOST_TTL_S) == 0:
            raise InvalidArgument("ttl must be more than 0 seconds", call="Context.save")
        ttl_ns = None if ttl is None else math.ceil(ttl * 1e9)
        options = wit.contexts.SaveOptions(ttl_ns=ttl_ns, overwrite=bool(overwrite))
        await event_loop.finish(call("Context.save", self._handle("save").save, name, options), "Context.save")

    @classmethod
    async def open(cls, name: str, model: Model | None = None) -> Context:
        """Open a saved context: tokens, chat and all that was computed. Each opening gives a context of its own.

        Args:
            name: What it was saved as.
            model: The model that it was saved with; by default the host's default.

        Raises:
            NotFound: There is none by that name, or its file is damaged.
            Unsupported: It was saved with another model, or with an adapter that is not there or is another one now.
        """
        checks.text(name, "name", "Context.open")
        handle = call("Context.open", wit.models.Model.open, None) if model is None else model._handle
        with call("Context.open", wit.contexts.Context.open, handle, name) as opening:
            await event_loop.wait(opening.ready())
            return cls(call("Context.open", opening.take), handle)

    @staticmethod
    def saved() -> list[SavedContext]:
        """The tenant's saved contexts, by name."""
        return [
            SavedContext(
                name=each.name,
                model=each.model,
                adapter=each.adapter,
                tokens=each.tokens,
                bytes=each.bytes,
                expires_in=None if each.expires_in_ns is None else each.expires_in_ns / 1e9,
            )
            for each in call("Context.saved", wit.contexts.list_saved)
        ]

    @staticmethod
    def delete(name: str) -> None:
        """Delete a saved context. Raises `NotFound`. Contexts that were opened from it stay as they are."""
        call("Context.delete", wit.contexts.delete_saved, checks.text(name, "name", "Context.delete"))

    @property
    def tokens(self) -> list[int]:
        """All tokens, in order."""
        return list(self._handle("tokens").tokens())

    @property
    def positions(self) -> int:
        """How many positions are taken: those of its tokens, and those of tokens that were evicted before them."""
        return self._handle("positions").positions()

    @property
    def room(self) -> int:
        """How many tokens can be added before the model's context length is reached."""
        return self._model.info().context_length - self.positions

    def __len__(self) -> int:
        """Number of tokens."""
        return self._handle("len").length()

    def __bool__(self) -> bool:
        return True  # an empty context is a context

    def __repr__(self) -> str:
        return "<Context, closed>" if self._open_handle is None else f"<Context, {len(self):,} tokens>"

    def generate(
        self,
        sampler: Sampler | None = None,
        *,
        stop: StopCondition | None = None,
        max_tokens: int | None = None,
        logprobs: int | None = None,
        chunk_interval: float = CHUNK_INTERVAL_S,
        json_schema: Any = None,
        regex: str | None = None,
        lark: str | None = None,
        choices: Iterable[str] | None = None,
        substring: str | None = None,
        tokens: Iterable[int] | None = None,
        speculation: Speculation | None = None,
        constraint: Constraint | None = None,
        mask: Mask | None = None,
        controller: str | None = None,
        config: Any = None,
    ) -> Generation:
        """Generate text at the end of the context, under one constraint or none.

        Await the generation for the whole `Draft`, or iterate over it with `async for` for `Chunk`s as they come; it
        starts when the one or the other does.

        Args:
            sampler: How the next token is chosen; greedy by default.
            stop: When to stop, besides the model's eos tokens and the context length.
            max_tokens: Short for `stop=max_tokens(n)`; adds to `stop`.
            logprobs: Report the log-probability of each token, and of this many most likely ones (0 to 20).
            chunk_interval: For `async for`: seconds between two chunks, at least. Tokens that come meanwhile join the
                next chunk. 0 gives every token at once, and takes more of the processor from the model.
            json_schema: Write JSON of this schema: a dict, a JSON text, a dataclass or another type that parameters may
                have, or a class with `model_json_schema`, as pydantic's. `draft.value` is the value, or the instance.
            regex: Write a text that matches as a whole; in the syntax of Rust's regex.
            lark: Write a text of this grammar, in llguidance's variant of Lark.
            choices: Write one of these texts.
            substring: Quote: write a run of whole words of this text.
            tokens: Write any number of these tokens.
            speculation: Guess the next tokens, so that several come of one step. What is generated stays the same.
            constraint: Write what a `Constraint` allows, which can be put together of several.
            mask: Sample only tokens of this set, besides what the constraint allows.
            controller: The name of a program that steers the generation token by token, and may replace the context's
                tokens. The host must know it, as `name` or `name@version`; or it is this very program's.
            config: What the controller is given, as JSON.

        Raises:
            InvalidArgument: An argument is out of its range. When it starts: the constraint has an error.
            QuotaExceeded: When it starts: compiling the constraint takes too much.
            Unavailable: When it starts: another generation runs on this context.
            ContextOverflow, KvExhausted: When it starts or later: there is no room.
            NotFound: When it starts: the host knows no such controller.
            ProgramFailed, DeadlineExceeded: The controller failed, or was late for good; with what it logged last.
        """
        sampler, stop = _sampler_and_stop(sampler, stop, max_tokens, "Context.generate")
        if logprobs is not None:
            checks.whole(logprobs, "logprobs", "Context.generate", 0, MOST_LOGPROBS)
        if not isinstance(speculation, Speculation | None):
            raise InvalidArgument(
                f"speculation must be a Speculation, not {type(speculation).__name__}",
                hint="Write speculation=Speculation(), or Speculation(expected=text).",
                call="Context.generate",
            )
        checks.number(chunk_interval, "chunk_interval", "Context.generate", 0, LONGEST_CHUNK_INTERVAL_S)
        constraint = constraint_of(
            json_schema=json_schema,
            regex=regex,
            lark=lark,
            choices=choices,
            substring=substring,
            tokens=tokens,
            constraint=constraint,
        )
        mask_id(mask, "Context.generate")
        sampler = sampler or Sampler.greedy()
        if controller is None:
            return Generation(
                self, sampler, stop, logprobs, chunk_interval, constraint=constraint, mask=mask, speculation=speculation
            )
        checks.text(controller, "controller", "Context.generate")
        if speculation is not None:
            raise InvalidArgument("a generation with a controller does not speculate", call="Context.generate")
        return ControlledGeneration(
            self,
            sampler,
            stop,
            logprobs,
            chunk_interval,
            constraint=constraint,
            mask=mask,
            controller=controller,
            config=checks.json_text(config, "config", "Context.generate"),
        )

    async def forward(
        self,
        tokens: Iterable[int] = (),
        *,
        parents: Iterable[int] | None = None,
        positions: Iterable[int] | None = None,
        ask: Iterable[Ask] = (),
        logprobs: bool = False,
    ) -> Pass:
        """Compute tokens after the last one without keeping them, and see what the model says of them.

        The context is busy until the pass that comes of it is committed or discarded; as a `with` block it discards
        itself. As a generation does, it begins the assistant's turn first if the last thing filled was a message.

        Args:
            tokens: At most 256 if they are a tree, else as many as there is room for.
            parents: For each token the index of the one that it follows, -1 for the context's last: it sees no others.
                By default each token follows the one before.
            positions: Where each token stands: after the one that it follows; what lies between is left out.
            ask: What is wanted of the tokens that come after some of these, or after the context's last.
            logprobs: Give the log-probability of each token, after what it follows.

        Raises:
            InvalidArgument: An argument is out of its range, or the context is empty.
            Unavailable: A generation or another pass runs on the context.
            QuotaExceeded: The run has 64 passes that are neither committed nor discarded.
            ContextOverflow, KvExhausted: There is no room.
        """
        return await compute(self, tokens, parents=parents, positions=positions, ask=ask, logprobs=logprobs)

    async def verify(self, draft: Iterable[int], sampler: Sampler | None = None, *, sample_index: int = 0) -> list[int]:
        """Append what the sampler chooses, as long as that is the next token of a draft, and one token more.

        All of it is one pass, so a draft of your own that the model goes along with is faster than a generation. With
        the same seed, and as `sample_index` the number of tokens sampled before, the tokens are those of a generation.

        Args:
            draft: Tokens that you expect: at most 63.
            sampler: How each token is chosen; greedy by default. Presence and frequency penalties count nothing here.
            sample_index: Which number of the sampler's seed the first token uses; each other one uses the next.

        Returns:
            The tokens appended: the beginning of the draft, and one that the sampler has chosen after it. They are all
            in the context; what ends a turn does not end this. Each of the draft's tokens counts as a generated one of
            the run, and one more.

        Raises:
            InvalidArgument, Unavailable, ContextOverflow, KvExhausted: As for `forward`.
        """
        return await verification.verify(self, draft, sampler, sample_index)

    async def score(self, options: Iterable[str]) -> list[float]:
        """How likely each of several texts is to come next: its log-probability, the sum over its tokens.

        They are computed together, what they have in common once, and nothing is kept. A text is split into tokens by
        itself, as `fill` does: where there would be a space before it, begin it with one. Longer texts are less likely;
        to compare texts of different lengths, divide by their number of tokens.
        """
        return await scoring.score(self, options)

    async def logprobs(self, text: str) -> list[TokenLogprob]:
        """Give the tokens of a text, each with its log-probability if the text followed the context. Keeps nothing.

        The text may be as long as the context has room; it is split into tokens as `fill` does.
        """
        return await scoring.logprobs(self, text)

    async def next_distribution(self, top: int = 20) -> Row:
        """What may come next: the `top` most likely tokens with their log-probabilities, and the entropy."""
        name = "Context.next_distribution"
        ask = Ask(top=checks.whole(top, "top", name), entropy=True)
        with await compute(self, (), parents=None, positions=None, ask=[ask], logprobs=False, name=name) as found:
            return found.rows[0]

    def steps(
        self,
        sampler: Sampler | None = None,
        *,
        stop: StopCondition | None = None,
        max_tokens: int | None = None,
        logprobs: int | None = None,
        mask: Mask | None = None,
        json_schema: Any = None,
        regex: str | None = None,
        lark: str | None = None,
        choices: Iterable[str] | None = None,
        substring: str | None = None,
        tokens: Iterable[int] | None = None,
        constraint: Constraint | None = None,
    ) -> Steps:
        """Generate token by token at the end of the context, with the program in control between them.

        `async with context.steps(sampler) as steps`, then `await steps.next(...)` for each token, and `steps.force`,
        `steps.backtrack` and `steps.fork` where the program wants to.

        Args:
            sampler: How a token is chosen where the step does not say otherwise; greedy by default.
            stop: When it ends, besides the model's eos tokens and the context length.
            max_tokens: Short for `stop=max_tokens(n)`: tokens that are there, without those that were taken back.
            logprobs: Report the log-probability of each sampled token, and of this many most likely ones (0 to 20).
            mask: Sample only its tokens.
            json_schema: What is sampled follows the schema, from here on; as for `generate`, these and what follows.
            regex: It matches as a whole.
            lark: It is a text of this grammar.
            choices: It is one of these texts.
            substring: It is a run of whole words of this text.
            tokens: It is any number of these tokens.
            constraint: It follows this constraint.

        Raises:
            InvalidArgument: An argument is out of its range. When it starts: the constraint has an error.
            Unavailable: When it starts: a generation runs on this context.
        """
        name = "Context.steps"
        sampler, stop = _sampler_and_stop(sampler, stop, max_tokens, name)
        constraint = constraint_of(
            json_schema=json_schema,
            regex=regex,
            lark=lark,
            choices=choices,
            substring=substring,
            tokens=tokens,
            constraint=constraint,
            call_name=name,
        )
        mask_id(mask, name)
        if logprobs is not None:
            checks.whole(logprobs, "logprobs", name, 0, MOST_LOGPROBS)
        return Steps(self, sampler, stop, logprobs, constraint, mask)

    def close(self) -> None:
        """Free the context and its share of the pages. A generation that runs on it should be ended first."""
        handle, self._open_handle = self._open_handle, None
        if handle is not None:
            handle.__exit__(None, None, None)

    def __enter__(self) -> Context:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _message(self, role: str, text: str) -> None:
        name = f"Context.{role}"
        handle = self._handle(role)
        call(name, handle.fill_message, wit.contexts.Role[role.upper()], checks.text(text, "text", name))

    def _handle(self, method: str) -> wit_contexts.Context:
        """The host's handle, for `method`. Raises `InvalidArgument` if the context was closed."""
        if self._open_handle is None:
            raise InvalidArgument("the context was closed", call=f"Context.{method}")
        return self._open_handle


def _sampler_and_stop(
    sampler: Sampler | None, stop: StopCondition | None, max_tokens: int | None, call_name: str
) -> tuple[Sampler, StopCondition]:
    """What is asked for, with defaults. Raises `InvalidArgument`, for the SDK's call `call_name`."""
    if not isinstance(sampler, Sampler | None):
        raise InvalidArgument(
            f"sampler must be a Sampler, not {type(sampler).__name__}",
            hint="Make one with Sampler.greedy(), Sampler.top_p(temperature, p), ...",
            call=call_name,
        )
    if not isinstance(stop, StopCondition | None):
        raise InvalidArgument(
            f"stop must be a stop condition, not {type(stop).__name__}",
            hint='Make one with max_tokens(n), stop_strings("..."), stop_tokens(id), and combine them with |.',
            call=call_name,
        )
    stop = stop or StopCondition()
    return sampler or Sampler.greedy(), stop if max_tokens is None else stop | stop_after(max_tokens)
