/** What the build puts there: the program of a built component, and the sample program of `warm_up.ts`. */

declare module "tartlet-program" {
  const bundle: import("./program").Bundle;
  export default bundle;
}

declare module "tartlet-warm-up" {
  const bundle: import("./program").Bundle;
  export default bundle;
}
