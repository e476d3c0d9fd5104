"""A chat completion: the endpoints `/v1/chat/completions` and `/v1/responses` are runs of this program.

Its input is what the front has made of the request: `model`, `messages` (`role` and `text`, of the assistant also
`calls`), `tools` (function objects), `forced` (names of tools of which one must be called), `settings` (see
`answering.py`), and the `adapter` of the model, if any. The prompt is computed once, and forked for each choice.
"""

from __future__ import annotations

from typing import Any

from answering import Settings, answer, refusal

from tartlet_sdk import Context, InvalidArgument, Model, TartletError, inferlet


@inferlet
async def main(
    model: str,
    messages: list[dict[str, Any]],
    settings: dict[str, Any],
    tools: list[dict[str, Any]],
    forced: list[str],
    adapter: str | None = None,
) -> dict[str, Any]:
    """Generate the choices that come after the messages."""
    try:
        opened = Model.open(model)
        context = opened.context(adapter=adapter)
        for message in with_tools(messages, tools):
            fill(context, message)
        context.cue()
        called = [tool for tool in tools if tool["name"] in forced]
        if called:
            from forced_calls import forced_call

            return await answer(opened, [context], Settings(settings), lambda *given: forced_call(*given, called))
        return await answer(opened, [context], Settings(settings, tool_names=[tool["name"] for tool in tools]))
    except TartletError as error:
        return refusal(error)


def with_tools(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with the tools described in the system's; all that the system says at the beginning in one."""
    num_system = next((k for k, message in enumerate(messages) if message["role"] != "system"), len(messages))
    texts = [message["text"] for message in messages[:num_system]]
    if tools:
        from tool_format import tools_text

        texts.append(tools_text(tools))
    system = [{"role": "system", "text": "\n\n".join(texts)}] if texts else []
    return [*system, *messages[num_system:]]


def fill(context: Context, message: dict[str, Any]) -> None:
    """Append a message. Where the model's template has no results of tools, they come as the user's."""
    role, text = message["role"], message["text"]
    if role == "system":
        context.system(text)
    elif role == "user":
        context.user(text)
    elif role == "assistant":
        calls = message.get("calls")
        context.assistant(with_calls(text, calls) if calls else text)
    else:
        try:
            context.tool(text)
        except InvalidArgument:
            from tool_format import response_text

            context.user(response_text(text))


def with_calls(text: str, calls: list[dict[str, str]]) -> str:
    """What the assistant has said and called."""
    from tool_format import call_text

    texts = [call_text(call["name"], call["arguments"]) for call in calls]
    return "\n".join([text, *texts] if text else texts)
