"""What a Python inferlet is written with.

import asyncio
from tartlet_sdk import Model, Sampler, inferlet, max_tokens

@inferlet
async def three_names(thing: str = "bakery") -> list[str]:
    context = Model.default().context()
    context.user(f"Suggest a name for a {thing}. Answer with the name only.")
    forks = [context.fork() for _ in range(3)]
    drafts = await asyncio.gather(*(fork.generate(Sampler.top_p(0.8, 0.95), stop=max_tokens(12)) for fork in forks))
    return [draft.text.strip() for draft in drafts]
"""

from tartlet_sdk import run, variables
from tartlet_sdk.answer import Splice
from tartlet_sdk.constraint import Constraint
from tartlet_sdk.context import Context, SavedContext
from tartlet_sdk.controlled import ControlledGeneration
from tartlet_sdk.controller import Branch, Controller, Sequence, StepInfo, Wait
from tartlet_sdk.draft import Chunk, Draft, TokenLogprob, TokenLogprobs, Usage
from tartlet_sdk.entry import inferlet, parameters
from tartlet_sdk.errors import (
    AlreadyExists,
    ArgumentError,
    Cancelled,
    ContextOverflow,
    DeadlineExceeded,
    Deadlock,
    Internal,
    InvalidArgument,
    KvExhausted,
    NotAwaited,
    NotFound,
    OutsideSandbox,
    PermissionDenied,
    ProgramError,
    ProgramFailed,
    QuotaExceeded,
    ResultError,
    TartletError,
    Unavailable,
    Unsupported,
)
from tartlet_sdk.forward import Ask, Pass, Row
from tartlet_sdk.generation import Generation
from tartlet_sdk.mask import Mask
from tartlet_sdk.matcher import Matcher
from tartlet_sdk.model import Model, ModelInfo
from tartlet_sdk.run import RunInfo, RunLimit
from tartlet_sdk.sampler import Sampler
from tartlet_sdk.speculation import Speculation
from tartlet_sdk.steps import Outcome, Steps
from tartlet_sdk.stop import StopCondition, ends_with_any, ignore_eos, max_tokens, stop_strings, stop_tokens

__version__ = "0.1.0"

__all__ = [
    "AlreadyExists",
    "ArgumentError",
    "Ask",
    "Branch",
    "Cancelled",
    "Chunk",
    "Constraint",
    "Context",
    "ContextOverflow",
    "ControlledGeneration",
    "Controller",
    "DeadlineExceeded",
    "Deadlock",
    "Draft",
    "Generation",
    "Internal",
    "InvalidArgument",
    "KvExhausted",
    "Mask",
    "Matcher",
    "Model",
    "ModelInfo",
    "NotAwaited",
    "NotFound",
    "Outcome",
    "OutsideSandbox",
    "Pass",
    "PermissionDenied",
    "ProgramError",
    "ProgramFailed",
    "QuotaExceeded",
    "ResultError",
    "Row",
    "RunInfo",
    "RunLimit",
    "Sampler",
    "SavedContext",
    "Sequence",
    "Speculation",
    "Splice",
    "StepInfo",
    "Steps",
    "StopCondition",
    "TartletError",
    "TokenLogprob",
    "TokenLogprobs",
    "Unavailable",
    "Unsupported",
    "Usage",
    "Wait",
    "ends_with_any",
    "ignore_eos",
    "inferlet",
    "max_tokens",
    "parameters",
    "run",
    "stop_strings",
    "stop_tokens",
    "variables",
]
