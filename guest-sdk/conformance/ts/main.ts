/** The conformance suite in TypeScript: runs the case that its input names, and returns the lines of its transcript. */

import { inferlet, input } from "tartlet-sdk";

import "./constraint_cases";
import "./context_cases";
import "./event_cases";
import "./failure_cases";
import "./forward_cases";
import "./generation_cases";
import "./model_cases";
import "./steered_cases";
import "./stepping_cases";
import "./store_cases";
import "./text_cases";
import "./tiny_cases";
import "./tree_cases";
import { CASES } from "./registry";
import { Transcript } from "./transcript";

export default inferlet({ case: input.text() }, async ({ case: name }) => {
  if (name === "list") {
    return Array.from(CASES.keys()).sort();
  }
  const transcript = new Transcript();
  await CASES.get(name)!(transcript);
  return transcript.lines;
});
