/// <reference path="./contract.d.ts" />
/** The host's interfaces, as componentize-qjs binds them. They exist only inside the sandbox. */

export * as constraints from "tartlet:inferlet/constraints@0.1.0";
export * as contexts from "tartlet:inferlet/contexts@0.1.0";
export * as controllers from "tartlet:inferlet/controllers@0.1.0";
export * as events from "tartlet:inferlet/events@0.1.0";
export * as forward from "tartlet:inferlet/forward@0.1.0";
export * as generation from "tartlet:inferlet/generation@0.1.0";
export * as log from "tartlet:inferlet/log@0.1.0";
export * as models from "tartlet:inferlet/models@0.1.0";
export * as runs from "tartlet:inferlet/runs@0.1.0";
export * as stepping from "tartlet:inferlet/stepping@0.1.0";
export * as store from "tartlet:inferlet/store@0.1.0";
