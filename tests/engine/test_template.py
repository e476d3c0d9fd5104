"""The sandbox of chat templates."""

from __future__ import annotations

import pytest

from tartlet_engine.template import MAX_OVERHEAD_CHARS, ChatError, Template

CHAT = [{"role": "user", "content": "<é> & 'x'"}]


def test_has_what_published_templates_use() -> None:
    """Loop controls, namespaces, tojson without HTML escapes, the generation tag, the date, trimmed blocks."""
    source = (
        "{% set ns = namespace(n=0) %}\n"
        "  {% for m in messages %}\n{% set ns.n = ns.n + 1 %}{% generation %}{{ m | tojson }}{% endgeneration %}"
        "{% if tools is none %}{% break %}{% endif %}{% endfor %}{{ ns.n }}{{ bos_token }}{{ strftime_now('%%') }}"
    )

    assert Template(source).render(CHAT, {"bos_token": "<s>"}) == '{"role": "user", "content": "<é> & \'x\'"}1<s>%'


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.append({}) }}",
        "{{ raise_exception.__globals__['json'] }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{% for i in range(10**9) %}{% endfor %}",
        "{% include '/etc/passwd' %}",
    ],
)
def test_the_sandbox_holds(source: str) -> None:
    """Templates reach neither Python's internals nor files, change nothing, and make no huge range."""
    with pytest.raises(ChatError, match=r"refuses a chat that ends with the roles user"):
        Template(source).render(CHAT, {})


def test_output_is_bounded() -> None:
    """A template that writes without end is stopped."""
    source = "{% for i in range(9999) %}{% for j in range(9999) %}xxxxxxxxxx{{ i }}{% endfor %}{% endfor %}"

    with pytest.raises(ChatError, match="writes too much"):
        Template(source).render(CHAT, {})


def test_long_messages_are_not_output_without_end() -> None:
    """The bound grows with the messages."""
    text = "x" * (2 * MAX_OVERHEAD_CHARS)

    assert Template("{{ messages[0].content }}").render([{"role": "user", "content": text}], {}) == text
