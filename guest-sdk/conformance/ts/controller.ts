/** The controller of the suite: its config says what it does. */

import { Controller, force, log, type Decision, type Sequence, type StepInfo } from "tartlet-sdk";

export class Steered extends Controller {
  override logprobs = 1;
  do = "";
  calls = 0;

  override start(config: { do: string }, prompt: number[]): string | null {
    this.do = config.do;
    log.info(`start ${this.do}, ${prompt.length} tokens`);
    if (this.do === "fail-at-start") {
      throw new Error("the reason is seven é");
    }
    return this.do === "prompt" ? "new prompt é" : null;
  }

  override step(sequence: Sequence, info: StepInfo): Decision {
    this.calls += 1;
    const number = sequence.generated.length;
    switch (this.do) {
      case "stop":
        return number >= 3 ? [] : null;
      case "allow":
        return number < 3 ? { allow: [120, 121] } : [];
      case "force":
        if (number === 0) {
          return force([72, 195, 169, 33]);
        }
        return number === 4 && this.calls === 2 ? force([63], 1) : [];
      case "splice": {
        const splices = [{ tokens: [88, 89], backtrack: 1, whenSampled: [98] }];
        return number < 4 ? { splices, bias: { 65: -1.5 }, temperature: 0.5 } : [];
      }
      case "fork":
        if (number === 0 && sequence.id === 0) {
          return [force([49]), force([50]), force([51])];
        }
        if (info.siblings.length > 0) {
          log.info(`sequence ${sequence.id} of [${info.siblings.join(", ")}]`);
        }
        return number >= 2 + sequence.id ? [] : null;
      case "wait":
        return this.calls === 1 ? { wait: { variable: "go", ms: 3_600_000 } } : number >= 2 ? [] : null;
      case "wait-for-ever":
        return { wait: { variable: "never" } };
      case "refused":
        if (info.refused !== null) {
          log.info(`${info.refused.code}: ${info.refused.message}`);
          return [];
        }
        return force([], 1000);
      case "fail-later":
        if (number >= 2) {
          throw new Error("the reason is seven é");
        }
        return null;
      default:
        return null;
    }
  }

  override end(sequence: Sequence, info: StepInfo): void {
    log.info(`sequence ${sequence.id} ends: ${info.finishReason}`);
  }
}
