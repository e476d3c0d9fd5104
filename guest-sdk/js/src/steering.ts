/** Between the contract's `start` and `step` and a program's `Controller`: keeps one of these for each sequence. */

import type { Branch as HostBranch, Decision as HostDecision, Outcome, StartAnswer } from "tartlet:inferlet/steering@0.1.0";

import { splicesOf } from "./answer";
import * as checks from "./checks";
import { type Branch, type Controller, type Decision, Sequence, type StepInfo, type Wait } from "./controller";
import { copyWithClasses } from "./copying";
import { type FinishReason, tokenLogprobs } from "./draft";
import { TartletError } from "./errors";
import { call, fromHost } from "./host_call";
import { maskId } from "./mask";
import { getModel } from "./model";
import { biases } from "./sampler";
import { events, store } from "./wit";

const CALL = "Controller.step";
const BRANCH = ["sample", "allow", "mask", "bias", "temperature", "splices"] as const;
const GO_ON: HostDecision = { tag: "go-on" };
const MOST_LOGPROBS = 20;
const MOST_WAIT_MS = 1e12;
const NS_PER_MS = 1e6;

/** The controllers of one generation, one for each of its sequences. */
export class Steering {
  readonly #controllers = new Map<number, Controller>();
  readonly #sequences = new Map<number, Sequence>();
  /** Events, by sequence. */
  readonly #waits = new Map<number, number[]>();
  /** Forks that nobody has heard of yet, by parent. */
  readonly #unborn = new Map<number, number[]>();
  /** The last decisions: the host still needs their masks. */
  readonly #branches = new Map<number, Branch[]>();
  #nextId = 1; // of the next sequence, as the host numbers them

  constructor(controller: Controller) {
    this.#controllers.set(0, controller);
  }

  /** Begin with the first sequence. */
  start(config: string, prompt: number[]): StartAnswer {
    const name = "Controller.start";
    const controller = this.#controllers.get(0)!;
    const replaced = controller.start(JSON.parse(config), prompt.slice()) ?? null;
    let tokens = prompt;
    if (typeof replaced === "string") {
      tokens = getModel().tokenize(replaced);
    } else if (replaced !== null) {
      tokens = checks.tokens(replaced as Iterable<number>, "the new prompt", name);
    }
    this.#sequences.set(0, new Sequence(0, tokens.slice(), tokens.length));
    const { logprobs } = controller;
    return {
      prompt: replaced === null ? null : tokens,
      logProbabilities: logprobs === null ? null : checks.whole(logprobs, "logprobs", "Controller", 0, MOST_LOGPROBS),
    };
  }

  /** Ask the controller of each sequence. */
  step(outcomes: Outcome[]): HostDecision[] {
    return outcomes.map((outcome) => this.#step(outcome));
  }

  #step(outcome: Outcome): HostDecision {
    const id = outcome.sequence;
    const sequence = this.#sequences.get(id)!;
    const controller = this.#controllers.get(id)!;
    sequence.tokens.length -= outcome.backtrack;
    sequence.tokens.push(...outcome.tokens);
    const unborn = this.#unborn.get(id) ?? [];
    this.#unborn.delete(id);
    if (outcome.refused !== null && outcome.siblings.length === 0) {
      unborn.forEach((child) => this.#forget(child));
    }
    this.#waits.get(id)?.forEach((event) => events.dropEvent(event));
    this.#waits.delete(id);
    const info: StepInfo = {
      backtrack: outcome.backtrack,
      tokens: outcome.tokens,
      sampled: outcome.sampled,
      siblings: outcome.siblings,
      logprobs: outcome.logProbabilities === null ? null : tokenLogprobs(outcome.logProbabilities),
      refused: outcome.refused === null ? null : fromHost(outcome.refused, CALL),
      finishReason: outcome.finishReason as FinishReason | null,
    };
    if (outcome.finishReason !== null) {
      controller.end(sequence, info);
      this.#forget(id);
      return GO_ON;
    }
    return this.#decision(id, controller.step(sequence, info));
  }

  #decision(id: number, decided: Decision): HostDecision {
    if (decided === undefined || decided === null) {
      return GO_ON;
    }
    if (typeof decided !== "object") {
      const hint = "Return a branch, several, { wait: ... } or nothing.";
      throw new TartletError("program", `a step must not return ${checks.kindOf(decided)}`, { call: CALL, hint });
    }
    if ("wait" in decided) {
      const waited = eventsOf(decided);
      this.#waits.set(id, waited);
      return { tag: "wait", val: waited };
    }
    const branches = Symbol.iterator in decided ? Array.from(decided) : [decided];
    const answers = branches.map(branchOf);
    this.#branches.set(id, branches);
    if (branches.length === 0) {
      this.#forget(id);
    }
    if (branches.length > 1) {
      this.#unborn.set(
        id,
        branches.slice(1).map(() => this.#fork(id)),
      );
    }
    return { tag: "branches", val: answers };
  }

  /** Copy a sequence and its controller; the new number. */
  #fork(id: number): number {
    const child = this.#nextId;
    this.#nextId += 1;
    const parent = this.#sequences.get(id)!;
    this.#sequences.set(child, new Sequence(child, parent.tokens.slice(), parent.promptLength));
    this.#controllers.set(child, copyWithClasses(this.#controllers.get(id)!));
    return child;
  }

  #forget(id: number): void {
    this.#sequences.delete(id);
    this.#controllers.delete(id);
    this.#branches.delete(id);
  }
}

function eventsOf({ wait }: Wait): number[] {
  const { variable, above, ms } = checks.options(wait, ["variable", "above", "ms"], CALL);
  const waited: number[] = [];
  if (variable !== undefined) {
    const name = checks.text(variable, "variable", CALL);
    const version = checks.whole(above ?? 0, "above", CALL, 0, Number.MAX_SAFE_INTEGER);
    waited.push(call(CALL, () => store.variableAbove(name, version)));
  }
  if (ms !== undefined) {
    waited.push(events.timer(Math.ceil(checks.number(ms, "ms", CALL, 0, MOST_WAIT_MS) * NS_PER_MS)));
  }
  if (waited.length === 0) {
    throw new TartletError("program", "a wait must name a variable, or a number of ms", { call: CALL });
  }
  return waited;
}

function branchOf(branch: Branch): HostBranch {
  const { sample, allow, mask, bias, temperature, splices } = checks.options(branch, BRANCH, CALL);
  return {
    sample: sample ?? true,
    allow: allow === undefined ? null : checks.tokens(allow, "allow", CALL),
    mask: maskId(mask, CALL),
    bias: bias === undefined ? [] : biases(bias, "bias", CALL),
    temperature: temperature === undefined ? null : checks.number(temperature, "temperature", CALL, 0),
    splices: splices === undefined ? [] : splicesOf(splices, CALL),
  };
}
