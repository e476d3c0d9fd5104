"""Reads LoRA adapters in the format of PEFT: a folder with `adapter_config.json` and `adapter_model.safetensors`.

What would change the results and is not understood is refused by name: computing without it would be wrong. Nothing but
safetensors is read, never a pickle.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tartlet_engine.weights import ModelLoadError

CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}", re.ASCII)

_MAX_NUMBER = 1e30  # nobody has such a rank or alpha

_TENSOR = re.compile(r"base_model\.model\.(?P<module>.+)\.lora_(?P<side>[AB])\.weight")
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)

_UNDERSTOOD = {"peft_type", "r", "lora_alpha", "use_rslora", "rank_pattern", "alpha_pattern", "target_modules"}
_UNDERSTOOD |= {"init_lora_weights"}
# Of training, of where things came from, or said by the names of the tensors.
_WITHOUT_EFFECT = {
    "auto_mapping", "base_model_name_or_path", "revision", "task_type", "inference_mode", "peft_version",
    "lora_dropout", "fan_in_fan_out", "layers_pattern", "layers_to_transform", "exclude_modules", "runtime_config",
    "ephemeral_gpu_offload", "megatron_core", "loftq_config", "eva_config", "qalora_group_size",
}  # fmt: skip
# Other ways of beginning a training change the weights of the model itself, which is then not the one that is served.
_INITIALISATIONS = (True, False, None, "gaussian", "eva", "orthogonal")


@dataclass(frozen=True, slots=True, eq=False)
class LoraMatrices:
    """What an adapter adds to the outputs of a linear module: `up @ (down @ inputs)`."""

    down: torch.Tensor  # float32[rank, inputs]
    up: torch.Tensor  # float32[outputs, rank], with the adapter's scale in it

    @property
    def size(self) -> tuple[int, int]:
        """Outputs and inputs of the module that they fit."""
        return self.up.shape[0], self.down.shape[1]


@dataclass(frozen=True, slots=True, eq=False)
class Adapter:
    """A LoRA adapter, read and checked as far as that goes without its model."""

    name: str
    digest: str  # SHA-256 of its files: what tells it from another of the same name
    modules: Mapping[str, LoraMatrices]  # by the names of the modules in the model

    def require_modules(self, sizes: Mapping[str, tuple[int, int]]) -> None:
        """Raise ModelLoadError unless all modules are among these, which have so many outputs and inputs."""
        for module, matrices in self.modules.items():
            if module not in sizes:
                kinds = ", ".join(sorted({name.rpartition(".")[2] for name in sizes}))
                raise self.error(f"it adapts {module}", f"Of this model these can be adapted, in its layers: {kinds}")
            if sizes[module] != matrices.size:
                expected, got = ("{}x{}".format(*size) for size in (sizes[module], matrices.size))
                raise self.error(f"{module} is {expected} in this model, and {got} in the adapter")

    def error(self, message: str, hint: str = "") -> ModelLoadError:
        """Return what to raise because of this adapter."""
        return _error(self.name, message, hint)


def read_adapter(name: str, folder: Path, max_bytes: int) -> Adapter:
    """Read an adapter's folder, all of it checked.

    Raises:
        ModelLoadError: the name cannot be one; there is no adapter in the folder, or a damaged one, or one of more than
            `max_bytes`; or it has something that is not supported.

    Cost: one read of the files; memory for the weights in float32.
    """
    if NAME.fullmatch(name) is None:
        hint = "A name has 1 to 128 letters a-z A-Z, digits and . _ : / -, and begins with a letter or digit"
        raise ModelLoadError(f"an adapter cannot be named {name[:200]!r}", hint)
    contents = []
    try:
        for file in (CONFIG_FILE, WEIGHTS_FILE):
            if (folder / file).stat().st_size > max_bytes:
                raise _error(name, f"its {file} has more than the {max_bytes:,} bytes left", "Allow more adapter_bytes")
            contents.append((folder / file).read_bytes())
    except OSError as error:
        hint = f"An adapter of PEFT is a folder with {CONFIG_FILE} and {WEIGHTS_FILE}"
        raise _error(name, f"{error.filename} cannot be read: {error.strerror}", hint) from error
    config = _read_config(name, contents[0])
    modules = _modules(name, config, _read_tensors(name, contents[1]))
    return Adapter(name, hashlib.sha256(b"".join(contents)).hexdigest(), modules)


def _read_config(name: str, content: bytes) -> dict[str, Any]:
    try:
        config = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _error(name, f"its {CONFIG_FILE} is no JSON: {error}") from error
    if not isinstance(config, dict):
        raise _error(name, f"its {CONFIG_FILE} is no JSON object")
    if config.get("peft_type") != "LORA":
        raise _error(name, f"its peft_type is {config.get('peft_type')!r}, and only LORA is supported")
    for field, value in config.items():
        is_off = value is None or value is False or value in ("none", [], {})
        if not is_off and field not in _UNDERSTOOD | _WITHOUT_EFFECT:
            raise _error(name, f"its setting {field} is {value!r:.200}, which is not supported")
    if config.get("init_lora_weights") not in _INITIALISATIONS:
        raise _error(
            name,
            f"its setting init_lora_weights is {config['init_lora_weights']!r:.200}, which changes the model's weights",
            "Save it with PEFT's path_initial_model_for_weight_conversion",
        )
    rank, alpha = config.get("r"), config.get("lora_alpha")
    if type(rank) is not int or rank < 1:
        raise _error(name, f"its rank r must be a whole number, at least 1, got {rank!r:.200}")
    for field in ("rank_pattern", "alpha_pattern"):
        if not isinstance(config.get(field) or {}, dict):
            raise _error(name, f"its {field} must have numbers by names of modules, got {config[field]!r:.200}")
    if not isinstance(config.get("use_rslora"), bool | None):
        raise _error(name, f"its use_rslora must be true or false, got {config['use_rslora']!r:.200}")
    if not _is_number(alpha):
        raise _error(name, f"its lora_alpha must be a finite number, got {alpha!r:.200}")
    return config


def _read_tensors(name: str, content: bytes) -> dict[str, torch.Tensor]:
    from safetensors.torch import load

    try:
        tensors: dict[str, torch.Tensor] = load(content)
    except Exception as error:  # the parser of a foreign file fails in its own ways
        raise _error(name, f"its {WEIGHTS_FILE} is damaged: {error}", "Fetch it again") from error
    return tensors


def _modules(name: str, config: dict[str, Any], tensors: dict[str, torch.Tensor]) -> dict[str, LoraMatrices]:
    """Put the tensors together in pairs, with the scale that the configuration gives them."""
    sides: dict[str, dict[str, torch.Tensor]] = {}
    for key, tensor in sorted(tensors.items()):
        match = _TENSOR.fullmatch(key)
        if match is None:
            raise _error(
                name, f"its tensor {key} is not supported", "Supported are lora_A and lora_B of linear modules"
            )
        if tensor.dim() != 2 or tensor.dtype not in _DTYPES:
            kind = f"{tensor.dtype}{[*tensor.shape]}".removeprefix("torch.")
            raise _error(name, f"its tensor {key} is {kind}, not a matrix of float32, bfloat16 or float16")
        if not tensor.isfinite().all():
            raise _error(name, f"its tensor {key} holds numbers that are not finite")
        sides.setdefault(match["module"], {})[match["side"]] = tensor
    modules = {module: _pair(name, config, module, pair) for module, pair in sides.items()}
    if not modules:
        raise _error(name, f"its {WEIGHTS_FILE} holds no weights")
    _check_targets(name, config.get("target_modules"), modules)
    return modules


def _pair(name: str, config: dict[str, Any], module: str, pair: dict[str, torch.Tensor]) -> LoraMatrices:
    if len(pair) != 2:
        raise _error(name, f"of {module} it has only lora_{next(iter(pair))}")
    rank = _by_pattern(name, config, "rank_pattern", module, config["r"])
    alpha = _by_pattern(name, config, "alpha_pattern", module, config["lora_alpha"])
    if rank < 1:
        raise _error(name, f"its rank_pattern gives {module} the rank {rank:g}, which must be at least 1")
    if not pair["A"].shape[0] == pair["B"].shape[1] == rank:
        found = f"lora_A {[*pair['A'].shape]} and lora_B {[*pair['B'].shape]}"
        raise _error(name, f"{module} should have rank {rank}, and has {found}")
    scale = alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)
    up = pair["B"].float() * scale
    if not up.isfinite().all():
        raise _error(name, f"of {module}, lora_B times the scale {scale:g} is too large for float32")
    return LoraMatrices(pair["A"].float(), up)


def _by_pattern(name: str, config: dict[str, Any], field: str, module: str, default: float) -> float:
    """Return a module's own rank or alpha if the configuration has one.

    PEFT takes the keys as regular expressions for the end of the name; served are those that are plain names.
    """
    for key, value in (config.get(field) or {}).items():
        if re.fullmatch(r"[\w.]+", key) is None:
            raise _error(name, f"its {field} has the expression {key!r:.200}; supported are plain names of modules")
        if not _is_number(value):
            raise _error(name, f"its {field} gives {key} {value!r:.200}, which is no finite number")
        if _is_named(module, key):
            return float(value)
    return default


def _check_targets(name: str, targets: Any, modules: Mapping[str, LoraMatrices]) -> None:
    """Compare what the configuration lists with the weights that there are. What is an expression is not compared."""
    if not isinstance(targets, list):
        return
    for target in map(str, targets):
        if not any(_is_named(module, target) for module in modules):
            raise _error(name, f"its target_modules name {target}, for which it has no weights")
    for module in modules:
        if not any(_is_named(module, str(target)) for target in targets):
            raise _error(name, f"it has weights for {module}, which is none of its target_modules")


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < _MAX_NUMBER  # so neither infinite nor NaN


def _is_named(module: str, end: str) -> bool:
    return module == end or module.endswith(f".{end}")


def _error(name: str, message: str, hint: str = "") -> ModelLoadError:
    return ModelLoadError(f"the adapter {name!r} cannot be used: {message}", hint)
