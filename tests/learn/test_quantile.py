"""Queues and percentiles: against NumPy on arbitrary numbers, and by hand."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goatrl.learn import quantile

CAPACITY = 16  # one size for all examples, so that one program serves them all

plain_numbers = st.floats(-1e6, 1e6, width=32, allow_subnormal=False)
few_numbers = st.integers(-2, 2).map(float)  # many ties, both signs
stored = st.one_of(
    *(st.lists(numbers, min_size=1, max_size=CAPACITY) for numbers in (plain_numbers, few_numbers))
)
alphas = st.one_of(
    st.floats(0, 100, width=32), st.sampled_from([0.0, 20.0, 25.0, 50.0, 80.0, 100.0])
)

percentile = jax.jit(quantile.percentile)
push = jax.jit(quantile.push)


def queue_of(values: list[float]) -> quantile.Fifo:
    padded = np.full(CAPACITY, np.inf, np.float32)
    padded[: len(values)] = values
    return quantile.Fifo(jnp.asarray(padded), jnp.asarray(len(values), jnp.int32))


@given(stored, alphas)
def test_percentile_is_that_of_numpy(values, alpha):
    expected = np.percentile(np.asarray(values, np.float64), alpha, method="linear")
    np.testing.assert_allclose(
        percentile(queue_of(values), alpha), expected, rtol=1e-5, atol=2e-6 * np.ptp(values)
    )


@given(stored, alphas, st.randoms(use_true_random=False))
def test_percentile_does_not_depend_on_the_order_in_the_queue(values, alpha, random):
    queue = queue_of(values)
    order = list(range(CAPACITY))
    random.shuffle(order)  # empty slots land between full ones too
    shuffled = quantile.Fifo(queue.values[jnp.asarray(order)], queue.count)
    np.testing.assert_array_equal(percentile(queue, alpha), percentile(shuffled, alpha))


@given(stored)
def test_extremes_ignore_empty_slots(values):
    queue = queue_of(values)
    assert float(quantile.smallest(queue)) == min(np.float32(values))
    assert float(quantile.largest(queue)) == max(np.float32(values))
    assert float(percentile(queue, 0.0)) == min(np.float32(values))
    assert float(percentile(queue, 100.0)) == max(np.float32(values))


SELECT_ALL = {
    bits: jax.jit(jax.vmap(partial(quantile._select, bits=bits, unroll=unroll), in_axes=(None, 0)))
    for bits, unroll in ((1, False), (2, True))
}  # every rank at once


@pytest.mark.parametrize("bits", [1, 2])
@given(values=stored)
def test_both_searches_find_every_rank(bits, values):
    queue = queue_of(values).values
    found = SELECT_ALL[bits](quantile._ordered_bits(queue), jnp.arange(CAPACITY))
    np.testing.assert_array_equal(quantile._from_ordered_bits(found), np.sort(np.asarray(queue)))


def test_ordered_bits_keep_order_and_come_back_exactly():
    values = np.float32(
        [
            -np.inf,
            -3.4e38,
            -2.0,
            -1.0000001,
            -1.0,
            -1e-30,
            0.0,
            1e-30,
            1.0,
            1.0000001,
            2.0,
            3.4e38,
            np.inf,
        ]
    )
    keys = np.asarray(quantile._ordered_bits(jnp.asarray(values)))
    assert keys.dtype == np.uint32
    assert (np.diff(keys.astype(np.int64)) > 0).all()
    np.testing.assert_array_equal(quantile._from_ordered_bits(jnp.asarray(keys)), values)


@pytest.mark.parametrize(
    ("rank", "expected"), [(0, -5.0), (1, -1.0), (2, -1.0), (3, 0.25), (4, 7.0)]
)
def test_order_statistic_by_hand(rank, expected):
    values = jnp.asarray([0.25, -1.0, 7.0, -5.0, -1.0])
    assert float(quantile.order_statistic(values, jnp.asarray(rank))) == expected


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [(0.0, 1.0), (25.0, 1.75), (30.0, 1.9), (50.0, 2.5), (80.0, 3.4), (100.0, 4.0)],
)
def test_percentile_by_hand_in_a_partly_filled_queue(alpha, expected):
    np.testing.assert_allclose(
        percentile(queue_of([4.0, 1.0, 3.0, 2.0]), alpha), expected, rtol=1e-6
    )


def test_percentile_between_ties_by_hand():
    queue = queue_of([-1.0, -1.0, -1.0, 3.0])
    np.testing.assert_allclose(
        [percentile(queue, a) for a in (50.0, 66.0, 75.0)], [-1.0, -1.0, 0.0], atol=1e-6
    )


def test_percentile_of_one_value_is_that_value():
    np.testing.assert_array_equal(
        [percentile(queue_of([-3.5]), a) for a in (0.0, 37.0, 100.0)], [-3.5, -3.5, -3.5]
    )


def test_percentile_of_a_long_queue():
    # The size that training uses: the position in the queue must not lose precision.
    values = np.random.default_rng(0).normal(size=50_000).astype(np.float32)
    for kept in (50_000, 31_337):
        queue = quantile.Fifo(
            jnp.asarray(np.where(np.arange(50_000) < kept, values, np.inf).astype(np.float32)),
            jnp.asarray(kept),
        )
        for alpha in (0.01, 50.0, 80.0, 99.9):
            np.testing.assert_allclose(
                percentile(queue, alpha), np.percentile(values[:kept], alpha), atol=2e-5
            )


def test_percentile_of_many_queues_at_once():
    queues = jax.tree.map(
        lambda *leaves: jnp.stack(leaves), queue_of([1.0, 2.0, 3.0]), queue_of([-4.0, 0.0])
    )
    got = jax.jit(jax.vmap(quantile.percentile))(queues, jnp.asarray([50.0, 25.0]))
    np.testing.assert_allclose(got, [2.0, -3.0], rtol=1e-6)


def test_a_new_queue_is_empty():
    queue = quantile.make_fifo(3)
    assert queue.values.shape == (3,)
    assert queue.values.dtype == jnp.float32
    assert int(queue.count) == 0
    assert float(quantile.smallest(queue)) == np.inf
    assert float(quantile.largest(queue)) == -np.inf


def test_the_oldest_batch_leaves_first():
    queue = quantile.make_fifo(4)
    contents = []
    for batch in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [-7.0, 8.0]):
        queue = push(queue, jnp.asarray(batch))
        contents.append((int(queue.count), sorted(np.asarray(queue.values).tolist())))
    inf = float("inf")
    assert contents == [
        (2, [1.0, 2.0, inf, inf]),
        (4, [1, 2, 3, 4]),
        (4, [3, 4, 5, 6]),
        (4, [-7, 5, 6, 8]),
    ]


@given(st.lists(st.lists(st.integers(-99, 99), min_size=3, max_size=3), min_size=1, max_size=9))
def test_the_queue_holds_the_most_recent_values(batches):
    capacity = 7  # no multiple of 3: a batch may stay in part
    queue = quantile.make_fifo(capacity)
    for batch in batches:
        queue = push(queue, jnp.asarray(batch, jnp.float32))
    held = [int(v) for v in np.asarray(queue.values) if np.isfinite(v)]
    assert int(queue.count) == len(held) == min(3 * len(batches), capacity)
    for value in (value for batch in batches[-2:] for value in batch):
        held.remove(value)  # raises where a recent value is missing
    remaining = list(batches[-3]) if len(batches) > 2 else []
    for value in held:
        remaining.remove(value)
    assert len(remaining) == (2 if len(batches) > 2 else 0)


def test_extremes_forget_what_left_the_queue():
    queue = push(push(quantile.make_fifo(2), jnp.asarray([-100.0, 100.0])), jnp.asarray([1.0, 2.0]))
    assert (float(quantile.smallest(queue)), float(quantile.largest(queue))) == (1.0, 2.0)
