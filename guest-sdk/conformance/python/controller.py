"""The controller of the suite: its config says what it does."""

from __future__ import annotations

from typing import Any

from tartlet_sdk import Branch, Controller, Sequence, Splice, StepInfo, Wait, wit


class Steered(Controller):
    """`{"do": name}`; texts are those of the fake engine's bytes."""

    logprobs = 1

    def start(self, config: Any, prompt: list[int]) -> str | None:
        self.do = config["do"]
        self.calls = 0
        wit.log.log(wit.log.Level.INFO, f"start {self.do}, {len(prompt)} tokens")
        if self.do == "fail-at-start":
            raise ValueError("the reason is seven é")
        return "new prompt é" if self.do == "prompt" else None

    def step(self, sequence: Sequence, info: StepInfo) -> Any:
        self.calls += 1
        number = len(sequence.generated)
        if self.do == "stop":
            return [] if number >= 3 else None
        if self.do == "allow":
            return Branch(allow=[120, 121]) if number < 3 else []
        if self.do == "force":
            if number == 0:
                return Branch.force([72, 195, 169, 33])
            return Branch.force([63], backtrack=1) if number == 4 and self.calls == 2 else []
        if self.do == "splice":
            return Branch(splices=[Splice([88, 89], 1, [98])], bias={65: -1.5}, temperature=0.5) if number < 4 else []
        if self.do == "fork":
            if number == 0 and sequence.id == 0:
                return [Branch.force([49]), Branch.force([50]), Branch.force([51])]
            if info.siblings:
                wit.log.log(wit.log.Level.INFO, f"sequence {sequence.id} of {info.siblings}")
            return [] if number >= 2 + sequence.id else None
        if self.do == "wait":
            if self.calls == 1:
                return Wait(variable="go", seconds=3600)
            return [] if number >= 2 else None
        if self.do == "wait-for-ever":
            return Wait(variable="never")
        if self.do == "refused":
            if info.refused is not None:
                wit.log.log(wit.log.Level.INFO, f"{info.refused.code}: {info.refused.message}")
                return []
            return Branch.force([], backtrack=1000)
        if self.do == "fail-later" and number >= 2:
            raise ValueError("the reason is seven é")
        return None

    def end(self, sequence: Sequence, info: StepInfo) -> None:
        wit.log.log(wit.log.Level.INFO, f"sequence {sequence.id} ends: {info.finish_reason}")
