"""First-in-first-out queues and their exact percentiles, without sorting.

Sorting 50,000 values at every update would cost more than the update. An order statistic needs only
counts: the bits of a float32, read as an ordered integer, are fixed from the top, a few at a time,
by counting how many values lie below each candidate. One pass over the queue settles `bits` bits.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from goatrl.types import pytree

EMPTY = jnp.inf  # sorts behind every stored value
_SIGN = np.uint32(0x80000000)


@pytree
class Fifo:
    """The last `capacity` values that were pushed, oldest first; slots not yet filled hold
    `EMPTY`.
    """

    values: jax.Array
    count: jax.Array


def make_fifo(capacity: int) -> Fifo:
    return Fifo(jnp.full((capacity,), EMPTY, jnp.float32), jnp.zeros((), jnp.int32))


def push(fifo: Fifo, new: jax.Array) -> Fifo:
    # A shift, not a ring buffer: a write position would differ per seed under vmap and turn into a
    # scatter.
    capacity = fifo.values.shape[0]
    values = jnp.concatenate([fifo.values, new])[-capacity:]
    return Fifo(values, jnp.minimum(fifo.count + new.shape[0], capacity))


def smallest(fifo: Fifo) -> jax.Array:
    return jnp.min(fifo.values)


def largest(fifo: Fifo) -> jax.Array:
    return jnp.max(jnp.where(fifo.values == EMPTY, -EMPTY, fifo.values))


def percentile(fifo: Fifo, alpha: Any) -> jax.Array:
    """The α-th percentile (0 … 100) of the stored values with linear interpolation, as NumPy
    computes it.
    """
    position = alpha / 100.0 * (fifo.count - 1).astype(jnp.float32)
    low = jnp.floor(position).astype(jnp.int32)
    lower = order_statistic(fifo.values, low)
    at_most = jnp.sum((fifo.values <= lower).astype(jnp.int32))
    upper = jnp.where(
        at_most > low + 1, lower, jnp.min(jnp.where(fifo.values > lower, fifo.values, EMPTY))
    )
    fraction = position - low.astype(jnp.float32)
    return jnp.where(fraction > 0, lower + fraction * (upper - lower), lower)


def order_statistic(values: jax.Array, rank: jax.Array) -> jax.Array:
    """The value that stands at `rank` (0-based) in sorted order."""
    # A pass costs a launch on a GPU. On a CPU it costs a comparison per value and candidate, and a
    # loop, which compiles sooner, runs as fast as its unrolled passes.
    found = jax.lax.platform_dependent(
        _ordered_bits(values),
        rank,
        cpu=partial(_select, bits=1, unroll=False),
        default=partial(_select, bits=2, unroll=True),
    )
    return _from_ordered_bits(found)


def _select(keys: jax.Array, rank: jax.Array, bits: int, unroll: bool) -> jax.Array:
    def settle(found: jax.Array, shift: jax.Array) -> tuple[jax.Array, None]:
        # One reduction with an output per candidate, so that each key is read once and not once per
        # candidate.
        smaller = tuple(
            (keys < found + (np.uint32(digit) << shift)).astype(jnp.int32)
            for digit in range(1, 2**bits)
        )
        below = jax.lax.reduce(smaller, tuple(np.int32(0) for _ in smaller), _add_each, (0,))
        digit = sum((count <= rank).astype(jnp.uint32) for count in below)
        return found + (digit << shift), None

    shifts = jnp.arange(32 - bits, -1, -bits).astype(jnp.uint32)
    return jax.lax.scan(settle, jnp.zeros((), jnp.uint32), shifts, unroll=unroll)[0]


def _add_each(one: tuple[jax.Array, ...], other: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def _ordered_bits(values: jax.Array) -> jax.Array:
    """float32 → uint32 with the same order."""
    bits = jax.lax.bitcast_convert_type(values, jnp.uint32)
    return jnp.where(bits >= _SIGN, ~bits, bits | _SIGN)


def _from_ordered_bits(keys: jax.Array) -> jax.Array:
    bits = jnp.where(keys >= _SIGN, keys & ~_SIGN, ~keys)
    return jax.lax.bitcast_convert_type(bits, jnp.float32)
