"""A conversation of several turns in one context: each turn computes only what is new."""

from tartlet_sdk import Model, Sampler, inferlet, max_tokens

QUESTIONS = ["What is the capital of France?", "Which river flows through it?", "Name one dish that is eaten there."]


@inferlet
async def chat(questions: list[str] = QUESTIONS, system: str = "Answer in one short sentence.") -> list[str]:
    """Ask one question after the other and return the answers."""
    answers = []
    with Model.default().context() as context:
        context.system(system)
        for question in questions:
            context.user(question)
            print(f"> {question}")

            generation = context.generate(Sampler.greedy(), stop=max_tokens(48))
            async for chunk in generation:
                print(chunk.text, end="")
            answer = generation.result
            print(f"\n  ({answer.usage.cached_tokens} of {answer.usage.prompt_tokens} prompt tokens were in the cache)")

            answers.append(answer.text.strip())
    return answers
