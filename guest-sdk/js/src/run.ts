/** The run itself. */

import type { Limit, RunInfo as HostRunInfo } from "tartlet:inferlet/runs@0.1.0";

import { runs } from "./wit";

/** Who am I: id, name of the inferlet, tenant, and seed. Of the seed, which has 64 bits, a number keeps the first 53. */
export type RunInfo = Readonly<HostRunInfo>;

/** A limit of the run; exceeding it ends the run. `name` is as the host's settings call it; `allowed: null` is no limit. */
export type RunLimit = Readonly<Limit>;

/** Say who the run is. */
export function info(): RunInfo {
  return runs.info();
}

/** The run's limits by name, such as `max_tokens`, with what has been used of them by now. */
export function limits(): Map<string, RunLimit> {
  return new Map(runs.limits().map((limit) => [limit.name, limit]));
}
