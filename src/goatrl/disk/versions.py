"""What made a file: recorded beside everything that is written."""

from __future__ import annotations

import platform
from importlib import metadata

import jax

import goatrl


def versions() -> dict[str, str]:
    return {
        "goatrl": goatrl.__version__,
        "jax": jax.__version__,
        "mujoco": metadata.version("mujoco"),
        "python": platform.python_version(),
        "device": jax.devices()[0].device_kind,
    }
