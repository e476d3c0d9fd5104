/** The smallest inferlet: a function, its arguments, its result. */

import { inferlet, input } from "tartlet-sdk";

export default inferlet({ name: input.text("world") }, ({ name }) => {
  console.log("This is printed by a program in a sandbox.");
  return `Hello, ${name}!`;
});
