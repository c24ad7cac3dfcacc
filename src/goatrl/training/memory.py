"""The device's memory: how much there is, how much a training needs, and what is said when it does
not suffice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax

from goatrl.types import Algorithm, GoatError, Spec

# A scan keeps what comes in, what goes out and what it works on: 60 agents of GOAT peak at 2.5 GiB.
COPIES = 3
SHARE = 0.8  # of the memory, which allocations never fill without gaps


def counted() -> dict[str, int]:
    """What the device says about its memory; a processor says nothing."""
    return jax.local_devices()[0].memory_stats() or {}


def available() -> float:
    """The bytes that may be planned with."""
    return SHARE * counted().get("bytes_limit", math.inf)


def of_arrays(tree: Any) -> int:
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def of_member(algorithm: Algorithm, spec: Spec) -> int:
    """The bytes that an agent needs while it trains, beside its dataset."""
    state = jax.eval_shape(lambda: algorithm.init(jax.random.key(0), spec))
    return COPIES * of_arrays(state)


@contextmanager
def refused_if_exhausted(members: int) -> Iterator[None]:
    """One line instead of JAX's report."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if not str(error).startswith("RESOURCE_EXHAUSTED"):
            raise
        raise GoatError(
            f"the device has too little memory to train {members} agents at once; use fewer "
            "--seeds, or fewer --groups at once"
        ) from error
