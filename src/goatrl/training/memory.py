"""The device's memory: how much there is, how much a training needs, and what is said when it does
not suffice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax

from goatrl.types import Algorithm, Episodes, GoatError, Spec

# A scan keeps what comes in, what goes out and what it works on: 60 agents of GOAT peak at 2.5 GiB.
COPIES = 3
SHARE = 0.8  # of the memory, which allocations never fill without gaps
# Of one program. More agents at once hardly train faster, while the cores wait longer for the first
# of them, and an interruption loses all.
MOST_MEMBERS = 30


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


def most_members(algorithm: Algorithm, spec: Spec, episodes: Episodes) -> int:
    """How many agents may learn from a dataset in one program."""
    left = available() - of_arrays(episodes)
    if math.isinf(left):
        return MOST_MEMBERS
    return min(MOST_MEMBERS, int(left // of_member(algorithm, spec)))


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
