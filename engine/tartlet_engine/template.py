"""The sandbox that chat templates are rendered in: transformers' Jinja environment, with caps.

Templates come with the weights, from the operator. They still can only read what they are given, and what they write is
bounded. Not bounded is the time of a template that loops without writing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_TEMPLATE_CHARS = 1 << 20
MAX_MESSAGES = 1024  # appending one costs time by the number of those before it
MAX_OVERHEAD_CHARS = 1 << 20  # rendered, beyond twice the length of the messages


class ChatError(ValueError):
    """What was asked for cannot be expressed in the model's chat template, or there is none."""


class Template:
    """A compiled chat template. Raises ChatError if it is too long or is not Jinja. Thread: any."""

    def __init__(self, source: str) -> None:
        if len(source) > MAX_TEMPLATE_CHARS:
            raise ChatError(f"the chat template has {len(source)} characters, allowed are {MAX_TEMPLATE_CHARS}")
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = _now
        try:
            self._template = environment.from_string(source)
        except (jinja2.TemplateError, RecursionError) as error:
            raise ChatError(f"the chat template cannot be compiled: {error}") from error

    def render(self, messages: Sequence[Mapping[str, str]], variables: Mapping[str, object]) -> str:
        """Render a conversation. Raises ChatError if the template refuses it, fails or writes too much."""
        if len(messages) > MAX_MESSAGES:
            raise ChatError(f"the chat would have {len(messages):,} messages, allowed are {MAX_MESSAGES:,}")
        left = MAX_OVERHEAD_CHARS + 2 * sum(len(message["content"]) for message in messages)
        pieces = []
        try:
            for piece in self._template.generate(messages=messages, tools=None, documents=None, **variables):
                pieces.append(piece)
                left -= len(piece)
                if left < 0:
                    raise ChatError("the chat template writes too much")
        except ChatError:
            raise
        except Exception as error:  # a template can fail with anything that an expression in Python can
            roles = ", ".join(message["role"] for message in messages[-8:]) or "none"
            raise ChatError(f"the chat template refuses a chat that ends with the roles {roles}: {error}") from error
        return "".join(pieces)


class _GenerationTag(Extension):
    """`{% generation %}`, which marks assistant text for training: it renders what it holds."""

    tags = {"generation"}  # noqa: RUF012 (Jinja declares it so)

    def parse(self, parser: Any) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _now(form: str) -> str:
    return datetime.now().strftime(form)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """`tojson` without Jinja's escaping of HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
