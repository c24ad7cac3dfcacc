"""The forward pass of a network as one kernel on a GPU: what its hidden layers compute never leaves
the chip.

An update of 30 agents is 12 % faster with half precision alone and 33 % faster with this kernel
(benchmarks/README.md).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

# The fastest of nine choices on an H200, with networks of 3 × 256 units. Other GPUs may have less
# memory on the chip than these need.
CAPABILITY = "9.0"  # of H100 and H200
ROWS, UNITS, WARPS, STAGES = 64, 64, 4, 3
HIDDEN = 3  # layers, as the kernel is written
WIDEST = 128  # input or output


def available() -> bool:
    """Whether this machine's device is one for which the kernel was made."""
    return getattr(jax.devices()[0], "compute_capability", "") == CAPABILITY


def fits(layers: tuple[Any, ...], activation: str, rows: int) -> bool:
    """Whether the kernel is for such a network; a plain pass is for all."""
    widths = {layer["w"].shape[-1] for layer in layers[:-1]}
    return (
        layers[0]["w"].dtype == jnp.float16
        and len(layers) == HIDDEN + 1
        and widths in ({UNITS}, {2 * UNITS}, {4 * UNITS})  # the registers hold no more
        and activation == "relu"
        and "scale" not in layers[0]
        and max(layers[0]["w"].shape[0], layers[-1]["w"].shape[1]) <= WIDEST
        and rows % ROWS == 0
    )


def forward(layers: tuple[Any, ...], *inputs: jax.Array, interpret: bool = False) -> jax.Array:
    """What `networks.mlp` returns: (B, …) → (B, outputs)."""
    # imported by those who use it: it takes a second and 70 MB
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    (first, *others, last), rows = layers, inputs[0].shape[0]
    half = last["w"].dtype
    given, outputs = first["w"].shape[0], last["w"].shape[1]
    wide, deep = _power_of_two(given), 1 if outputs == 1 else _power_of_two(outputs)
    padding = [jnp.zeros((rows, wide - given), half)] if wide > given else []
    x = jnp.concatenate([*(each.astype(half) for each in inputs), *padding], axis=-1)
    weights = [
        jnp.pad(first["w"], ((0, wide - given), (0, 0))),
        *(layer["w"] for layer in others),
        last["w"].T if deep == 1 else jnp.pad(last["w"], ((0, 0), (0, deep - outputs))),
    ]
    biases = [layer["b"][None] for layer in layers]
    biases[-1] = jnp.pad(biases[-1], ((0, 0), (0, deep - outputs)))
    operands = [each for pair in zip(weights, biases, strict=True) for each in pair]
    whole = [pl.BlockSpec(each.shape, lambda block: (0, 0)) for each in operands]
    found: jax.Array = pl.pallas_call(
        _kernel,
        grid=(rows // ROWS,),
        in_specs=[pl.BlockSpec((ROWS, wide), lambda block: (block, 0)), *whole],
        out_specs=pl.BlockSpec((ROWS, deep), lambda block: (block, 0)),
        out_shape=jax.ShapeDtypeStruct((rows, deep), jnp.float32),  # type: ignore[no-untyped-call]
        compiler_params=triton.CompilerParams(num_warps=WARPS, num_stages=STAGES),
        interpret=interpret,
    )(x, *operands)
    return found[:, :outputs]


def _kernel(
    x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, w4: Any, b4: Any, out: Any
) -> None:
    """Some rows through all layers. The first two layers are computed together, some units of the
    first at a time; then the last two, some units of the third at a time: all sums are of one size.
    """
    from jax.experimental.pallas import ds

    seen, half, steps = x[...], w2.dtype, w2.shape[0] // UNITS

    def first_two(step: Any, total: jax.Array) -> jax.Array:
        units = ds(step * UNITS, UNITS)
        hidden = _relu(_product(seen, w1[:, units]) + b1[:, units]).astype(half)
        return total + _product(hidden, w2[units, :])

    def last_two(step: Any, total: jax.Array) -> jax.Array:
        units = ds(step * UNITS, UNITS)
        hidden = _relu(_product(second, w3[:, units]) + b3[:, units])
        if out.shape[1] == 1:  # too narrow for a matrix product
            return total + jnp.sum(hidden * w4[:, units], axis=1, keepdims=True)
        return total + _product(hidden.astype(half), w4[units, :])

    start = jnp.zeros((seen.shape[0], w2.shape[1]), jnp.float32)
    second = _relu(jax.lax.fori_loop(0, steps, first_two, start) + b2[...]).astype(half)
    out[...] = jax.lax.fori_loop(0, steps, last_two, jnp.zeros(out.shape, jnp.float32)) + b4[...]


def _product(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.dot(a, b, preferred_element_type=jnp.float32)


def _relu(x: jax.Array) -> jax.Array:
    return jnp.maximum(x, 0.0)


def _power_of_two(size: int, least: int = 16) -> int:
    """The next power of two, and at least what a matrix product takes."""
    return max(least, 1 << (size - 1).bit_length())
