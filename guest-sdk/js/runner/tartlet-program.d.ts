/** The program of a built component, which the build puts there. */
declare module "tartlet-program" {
  const bundle: import("./program").Bundle;
  export default bundle;
}
