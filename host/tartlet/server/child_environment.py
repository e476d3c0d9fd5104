"""What of the front's environment its children get. What is not named here they don't: it may be a secret."""

from __future__ import annotations

from collections.abc import Mapping

_OF_ALL = (
    "HOME",
    "LANG",
    "LC_",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONHASHSEED",
    "PYTHONHOME",
    "PYTHONPATH",
    "TARTLET_HOME",
    "TEMP",
    "TMP",
    "TZ",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
)
_OF_ENGINE = (
    "CC",
    "CUDA_",
    "GOMP_",
    "HF_",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "KMP_",
    "MKL_",
    "NO_PROXY",
    "NVIDIA_",
    "OMP_",
    "PYTORCH_",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_",
    "TARTLET_CPU_KERNELS",
    "TOKENIZERS_",
    "TORCH",
    "TRANSFORMERS_",
    "TRITON_",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
"""It fetches models, with the token for Hugging Face that `HF_TOKEN` holds, and drives devices."""


def worker_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What a worker or a compile child gets of an environment."""
    return _chosen(environment, _OF_ALL)


def engine_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What the engine's process gets of an environment."""
    return _chosen(environment, _OF_ALL + _OF_ENGINE)


def _chosen(environment: Mapping[str, str], beginnings: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(beginnings)}
