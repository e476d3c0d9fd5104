// Says that it has begun, then waits.
import { inferlet, input, print, sleep } from "tartlet-sdk";

export default inferlet({ seconds: input.number(0) }, async ({ seconds }) => {
  print("begun");
  await sleep(1000 * seconds);
});
