from typing import Any

import pytest

pytestmark = pytest.mark.runner


@pytest.mark.parametrize(
    ("sampling", "stop", "options", "words"),
    [
        ({"temperature": -1.0}, {}, {}, "temperature is -1; it must be between 0 and 100"),
        ({"temperature": 101.0}, {}, {}, "temperature is 101; it must be between 0 and 100"),
        ({"temperature": "nan"}, {}, {}, "temperature is nan"),
        ({"top_p": 0.0}, {}, {}, "top-p is 0"),
        ({"top_p": 1.5}, {}, {}, "top-p is 1.5; it must be between 0 and 1"),
        ({"min_p": -0.5}, {}, {}, "min-p is -0.5"),
        ({"repetition_penalty": 0.0}, {}, {}, "repetition-penalty is 0; it must be above 0.001, up to 100"),
        ({"repetition_penalty": 1e-38}, {}, {}, "repetition-penalty is 1e-38"),
        ({"repetition_penalty": 101.0}, {}, {}, "repetition-penalty is 101"),
        ({"presence_penalty": "inf"}, {}, {}, "presence-penalty is inf; it must be between -100 and 100"),
        ({"frequency_penalty": 101.0}, {}, {}, "frequency-penalty is 101; it must be between -100 and 100"),
        ({"logit_bias": [[3, -1001.0]]}, {}, {}, "logit-bias of token 3 is -1001; it must be between -1000 and 1000"),
        ({"logit_bias": [[3, 1.0]] * 1025}, {}, {}, "1,025 logit-bias; at most 1,024"),
        ({"logit_bias": [[300, 1.0]]}, {}, {}, "logit-bias token 300"),
        ({}, {"max_tokens": 0}, {}, "max-tokens is 0"),
        ({}, {"tokens": [258]}, {}, "stop token 258"),
        ({}, {"strings": [""]}, {}, "a stop string is empty"),
        ({}, {"tokens": [5] * 1025}, {}, "1,025 stop tokens; at most 1,024"),
        ({}, {"strings": ["x"] * 17}, {}, "17 stop strings; at most 16"),
        ({}, {}, {"log_probabilities": 21}, "21 log-probabilities; at most 20"),
        ({}, {}, {"speculation": [0, 3, []]}, "speculation's max-draft is 0; it must be between 1 and 32"),
        ({}, {}, {"speculation": [33, 3, []]}, "speculation's max-draft is 33"),
        ({}, {}, {"speculation": [8, 9, []]}, "speculation's ngram is 9; it must be between 1 and 8"),
        ({}, {}, {"speculation": [8, 3, [300]]}, "expected token 300"),
        ({}, {}, {"speculation": [8, 3, [1] * 16_385]}, "16,385 expected tokens; at most 16,384"),
    ],
)
def test_arguments_out_of_range(
    guest: Any, sampling: dict[str, Any], stop: dict[str, Any], options: dict[str, Any], words: str
) -> None:
    """Each argument is checked before anything starts, and the message names it."""
    code, message = guest(
        """
        sampling, stop, chosen = value
        context = contexts.Context.create(models.Model.open(None), None)
        context.fill("hello")
        for record, changes in ((SAMPLING, sampling), (STOP, stop)):
            for name, new in changes.items():
                setattr(record, name, float(new) if isinstance(new, str) else new)
        SAMPLING.logit_bias = [tuple(entry) for entry in SAMPLING.logit_bias]
        if "speculation" in chosen:
            chosen["speculation"] = generation.Speculation(*chosen["speculation"])
        return refused(generation.generate, context, SAMPLING, STOP, options(**chosen))
    """,
        [sampling, stop, options],
    )

    assert code == "INVALID_ARGUMENT"
    assert words in message
