"""Small components in the text format of WebAssembly: programs without a language runtime.

Each exports `run`, takes a number as its input and returns a JSON array of the numbers that its body has recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

import wasmtime


@dataclass(frozen=True, slots=True)
class Import:
    """One function that a fixture imports."""

    interface: str
    name: str  # of the item
    core_name: str  # without the $
    core_type: str
    has_memory: bool = False


_ERROR = """
        (type $c (enum "invalid-argument" "not-found" "already-exists" "permission-denied" "quota-exceeded"
          "kv-exhausted" "context-overflow" "deadline-exceeded" "cancelled" "unsupported" "unavailable" "internal"
          "deadlock" "program-failed"))
        (export "error-code" (type $code (eq $c)))
        (type $e (record (field "code" $code) (field "message" string) (field "hint" string)))
        (export "error" (type $error (eq $e)))"""

_INTERFACES = {
    "wasi:clocks/monotonic-clock@0.2.0": '(export "now" (func (result u64)))',
    "bench:calls/empty@0.1.0": '(export "immediate" (func)) (export "suspending" (func))',
    "tartlet:inferlet/log@0.1.0": '(export "print" (func (param "text" string)))',
    "tartlet:inferlet/events@0.1.0": """
        (export "poll" (func (param "events" (list u32)) (param "timeout-ns" (option u64)) (result (list u32))))""",
    "tartlet:inferlet/runs@0.1.0": """
        (type $i (record (field "id" string) (field "inferlet" string) (field "tenant" string) (field "seed" u64)))
        (export "run-info" (type $run-info (eq $i)))
        (export "info" (func (result $run-info)))""",
    "tartlet:inferlet/models@0.1.0": f"""
        (export "model" (type $model (sub resource)))
        {_ERROR}
        (type $i (record (field "name" string) (field "architecture" string) (field "context-length" u32)
          (field "vocabulary-size" u32) (field "page-size" u32) (field "eos-tokens" (list u32))
          (field "features" (list string)) (field "adapters" (list string))))
        (export "model-info" (type $model-info (eq $i)))
        (export "[static]model.open"
          (func (param "name" (option string)) (result (result (own $model) (error $error)))))
        (export "[method]model.info" (func (param "self" (borrow $model)) (result $model-info)))""",
    "tartlet:inferlet/contexts@0.1.0": f"""
        (alias outer 1 $model (type $model))
        (export "context" (type $context (sub resource)))
        {_ERROR}
        (export "[static]context.create" (func (param "model" (borrow $model)) (param "adapter" (option string))
          (result (result (own $context) (error $error)))))
        (export "[method]context.fill" (func (param "self" (borrow $context)) (param "text" string)
          (result (result (error $error)))))""",
    "tartlet:inferlet/stepping@0.1.0": f"""
        (alias outer 1 $context (type $context))
        {_ERROR}
        (type $s (record (field "temperature" f32) (field "top-k" u32) (field "top-p" f32) (field "min-p" f32)
          (field "repetition-penalty" f32) (field "presence-penalty" f32) (field "frequency-penalty" f32)
          (field "logit-bias" (list (tuple u32 f32))) (field "seed" (option u64))))
        (export "sampling" (type $sampling (eq $s)))
        (type $w (record (field "max-tokens" (option u32)) (field "tokens" (list u32)) (field "strings" (list string))
          (field "ignore-eos" bool)))
        (export "stop-conditions" (type $stop (eq $w)))
        (type $o (record (field "log-probabilities" (option u32)) (field "constraint" (option u32))
          (field "mask" (option u32))))
        (export "options" (type $options (eq $o)))
        (type $p (record (field "when-sampled" (list u32)) (field "backtrack" u32) (field "tokens" (list u32))))
        (export "splice" (type $splice (eq $p)))
        (type $a (record (field "sample" bool) (field "allow" (option (list u32))) (field "mask" (option u32))
          (field "bias" (list (tuple u32 f32))) (field "boosts" (list (tuple u32 f32)))
          (field "temperature" (option f32)) (field "splices" (list $splice))))
        (export "answer" (type $answer (eq $a)))
        (type $r (enum "eos" "stop-token" "stop-string" "length" "complete" "cancelled" "stopped"
          "deadlock"))
        (export "finish-reason" (type $reason (eq $r)))
        (type $u (record (field "prompt-tokens" u32) (field "cached-tokens" u32)
          (field "generated-tokens" u32) (field "forced-tokens" u32)
          (field "draft-tokens" u32) (field "accepted-tokens" u32) (field "pages" u32)
          (field "shared-pages" u32) (field "first-token-ns" u64) (field "total-ns" u64)))
        (export "usage" (type $usage (eq $u)))
        (type $f (record (field "reason" $reason) (field "stop-string" (option string)) (field "usage" $usage)))
        (export "finish" (type $finish (eq $f)))
        (type $l (record (field "token" u32) (field "log-probability" f32)))
        (export "token-log-probability" (type $logprob (eq $l)))
        (type $q (record (field "chosen" $logprob) (field "top" (list $logprob))))
        (export "position-log-probabilities" (type $position (eq $q)))
        (type $d (record (field "backtrack" u32) (field "tokens" (list u32)) (field "sampled" (option u32))
          (field "text-backtrack" u32) (field "text" string) (field "log-probabilities" (option $position))
          (field "finish" (option $finish))))
        (export "outcome" (type $outcome (eq $d)))
        (export "steps" (type $steps (sub resource)))
        (export "start" (func (param "context" (borrow $context)) (param "sampling" $sampling) (param "stop" $stop)
          (param "options" $options) (result (result (own $steps) (error $error)))))
        (export "[method]steps.next" (func (param "self" (borrow $steps)) (param "answer" $answer)
          (result (result $outcome (error $error)))))""",
}
_SHARED = {"tartlet:inferlet/models@0.1.0": "model", "tartlet:inferlet/contexts@0.1.0": "context"}
"""The resource of an interface that later ones use."""

NOW = Import("wasi:clocks/monotonic-clock@0.2.0", "now", "now", "(result i64)")
IMMEDIATE = Import("bench:calls/empty@0.1.0", "immediate", "immediate", "")
SUSPENDING = Import("bench:calls/empty@0.1.0", "suspending", "suspending", "")
PRINT = Import("tartlet:inferlet/log@0.1.0", "print", "print", "(param i32 i32)", has_memory=True)
POLL = Import("tartlet:inferlet/events@0.1.0", "poll", "poll", "(param i32 i32 i32 i64 i32)", has_memory=True)
RUN_INFO = Import("tartlet:inferlet/runs@0.1.0", "info", "run_info", "(param i32)", has_memory=True)
OPEN_MODEL = Import(
    "tartlet:inferlet/models@0.1.0", "[static]model.open", "open_model", "(param i32 i32 i32 i32)", has_memory=True
)
MODEL_INFO = Import(
    "tartlet:inferlet/models@0.1.0", "[method]model.info", "model_info", "(param i32 i32)", has_memory=True
)

CREATE_CONTEXT = Import(
    "tartlet:inferlet/contexts@0.1.0",
    "[static]context.create",
    "create_context",
    "(param i32 i32 i32 i32 i32)",
    has_memory=True,
)
FILL = Import(
    "tartlet:inferlet/contexts@0.1.0", "[method]context.fill", "fill", "(param i32 i32 i32 i32)", has_memory=True
)
START_STEPS = Import("tartlet:inferlet/stepping@0.1.0", "start", "start_steps", "(param i32 i32)", has_memory=True)
NEXT_STEP = Import(
    "tartlet:inferlet/stepping@0.1.0",
    "[method]steps.next",
    "next_step",
    f"(param {'i32 ' * 12}f32 i32 i32 i32)",
    has_memory=True,
)

# The memory: 0 what `run` returns, 16 results of host calls, 1 KiB the text of the recorded numbers, 128 KiB to 1 MiB
# what the host allocates. That is reused from its start once it is full: nothing here looks at it for long.
_MEMORY = """
  (core module $memory_module
    (memory (export "memory") 17)
    (global $next (mut i32) (i32.const 131072))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (if (i32.gt_u (i32.add (local.get $at) (local.get 3)) (i32.const 1048576))
        (then (local.set $at (i32.const 131072))))
      (global.set $next (i32.add (local.get $at) (local.get 3)))
      (local.get $at)))
  (core instance $memory (instantiate $memory_module))"""

_HELPERS = """
    (global $end (mut i32) (i32.const 1025))
    (data (i32.const 1024) "[")
    (func $number (param $at i32) (param $size i32) (result i64)
      (local $value i64)
      (block $done
        (loop $digit
          (br_if $done (i32.eqz (local.get $size)))
          (local.set $value (i64.add (i64.mul (local.get $value) (i64.const 10))
            (i64.sub (i64.load8_u (local.get $at)) (i64.const 48))))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (local.set $size (i32.sub (local.get $size) (i32.const 1)))
          (br $digit)))
      (local.get $value))
    (func $record (param $value i64)
      (local $rest i64) (local $at i32)
      (local.set $at (global.get $end))
      (local.set $rest (local.get $value))
      (loop $digit
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (local.set $rest (i64.div_u (local.get $rest) (i64.const 10)))
        (br_if $digit (i64.ne (local.get $rest) (i64.const 0))))
      (i32.store8 (local.get $at) (i32.const 44)) ;; a comma
      (global.set $end (i32.add (local.get $at) (i32.const 1)))
      (loop $digit
        (local.set $at (i32.sub (local.get $at) (i32.const 1)))
        (i32.store8 (local.get $at)
          (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (local.get $value) (i64.const 10)))))
        (local.set $value (i64.div_u (local.get $value) (i64.const 10)))
        (br_if $digit (i64.ne (local.get $value) (i64.const 0)))))"""


def component(body: str, *imports: Import) -> bytes:
    """Make a component.

    Args:
        body: Instructions in the text format. They may use the locals `$n` (i64, the input), `$i` (i64), `$t` (i64),
            `$model`, `$context` and `$steps` (i32), the imports by their core names, and `$record`, which takes an i64;
            they must record one.
        imports: What the body calls.
    """
    interfaces = {imported.interface: f"$interface_{index}" for index, imported in enumerate(imports)}
    instances = [
        f'(import "{name}" (instance {var} {_INTERFACES[name]}))' + _alias(name, var)
        for name, var in interfaces.items()
    ]
    lowered = [_lower(imported, interfaces[imported.interface]) for imported in imports]
    core_imports = [f'(import "host" "{i.core_name}" (func ${i.core_name} {i.core_type}))' for i in imports]
    core_exports = [f'(export "{i.core_name}" (func ${i.core_name}))' for i in imports]
    text = f"""(component
  {" ".join(instances)}
  {_MEMORY}
  {" ".join(lowered)}
  (core module $main_module
    (import "libc" "memory" (memory 1))
    {" ".join(core_imports)}
    {_HELPERS}
    (func (export "run") (param $at i32) (param $size i32) (result i32)
      (local $n i64) (local $i i64) (local $t i64)
      (local $model i32) (local $context i32) (local $steps i32)
      (local.set $n (call $number (local.get $at) (local.get $size)))
      {body}
      (i32.store8 (i32.sub (global.get $end) (i32.const 1)) (i32.const 93)) ;; a bracket, for the last comma
      (i32.store (i32.const 0) (i32.const 0))
      (i32.store (i32.const 4) (i32.const 1024))
      (i32.store (i32.const 8) (i32.sub (global.get $end) (i32.const 1024)))
      (i32.const 0)))
  (core instance $main (instantiate $main_module
    (with "libc" (instance $memory)) (with "host" (instance {" ".join(core_exports)}))))
  (func (export "run") (param "input" string) (result (result string (error string)))
    (canon lift (core func $main "run")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc")))))"""
    return bytes(wasmtime.wat2wasm(text))


def loop(instructions: str) -> str:
    """Repeat instructions `$n` times, `$i` counting down."""
    return f"""
      (local.set $i (local.get $n))
      (loop $again
        {instructions}
        (local.set $i (i64.sub (local.get $i) (i64.const 1)))
        (br_if $again (i64.ne (local.get $i) (i64.const 0))))"""


def timed_loop(instructions: str) -> str:
    """Repeat instructions `$n` times, and record how many nanoseconds that took in all. Needs NOW."""
    return f"""
      (local.set $t (call $now))
      {loop(instructions)}
      (call $record (i64.sub (call $now) (local.get $t)))"""


def sleep(nanoseconds: int) -> str:
    """Wait in `events.poll`. Needs POLL."""
    return f"(call $poll (i32.const 0) (i32.const 0) (i32.const 1) (i64.const {nanoseconds}) (i32.const 16))"


def _alias(interface: str, instance: str) -> str:
    name = _SHARED.get(interface)
    return "" if name is None else f' (alias export {instance} "{name}" (type ${name}))'


def _lower(imported: Import, instance: str) -> str:
    options = '(memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))'
    return f'(core func ${imported.core_name} (canon lower (func {instance} "{imported.name}")' + (
        f" {options}))" if imported.has_memory else "))"
    )
