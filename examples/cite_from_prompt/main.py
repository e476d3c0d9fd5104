"""An answer and its proof: the proof is a quotation, word for word, because nothing else can be written."""

from tartlet_sdk import Model, inferlet, max_tokens, stop_strings

TEXT = (
    "The lighthouse of Pellworm was built in 1907 on a dyke. It is forty-one metres high and still in use. "
    "Since 1998 couples can be married in a room below the lantern. The last keeper left in 1977, "
    "when the light was automated."
)
QUESTION = "When was the lighthouse built?"


@inferlet
async def cite_from_prompt(text: str = TEXT, question: str = QUESTION, max_words: int = 20) -> dict[str, str | int]:
    """Answer a question about a text, and quote the words that say so."""
    with Model.default().context() as context:
        context.system("You answer questions about a text, and quote it.")
        context.user(f"Text: {text}\n\nQuestion: {question}")
        context.cue()
        context.fill("The text says: ")
        quotation = await context.generate(substring=text, stop=max_tokens(3 * max_words) | stop_strings("."))
        context.fill("\nThe answer is: ")
        answer = await context.generate(stop=max_tokens(40) | stop_strings("\n"))

    cited = quotation.text.strip()
    place = text.find(cited)
    print(f"{answer.text.strip()}\n  | {text[:place]}[{cited}]{text[place + len(cited) :]}")
    return {"answer": answer.text.strip(), "quotation": cited, "place": place}
