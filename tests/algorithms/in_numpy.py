"""Five updates of an algorithm, in JAX and again in NumPy: from a plain loss in double precision,
by difference quotients and Adam as its paper writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from goatrl import algorithms
from goatrl.learn.networks import MLP
from goatrl.learn.parameters import override
from goatrl.types import Batch, Settings, Spec

SPEC = Spec(observation_dim=3, goal_dim=2, action_dim=2, horizon=9, goal_threshold=0.1)
SETTINGS = Settings(target_period=2, polyak=0.9)
RATE, UPDATES, ROWS, STEP = 1e-3, 5, 7, 1e-5
# Of parameters as they stand, of those through which no gradient flows, of the target's.
Loss = Callable[[Any, Any, Any, Batch], float]


def network(net: MLP, *inputs: np.ndarray) -> np.ndarray:
    """(B, …) → (B, outputs), or (N, B, outputs) for an ensemble."""
    x = np.concatenate(inputs, axis=-1)
    for place, layer in enumerate(net.layers):
        x = x @ layer["w"] + layer["b"][..., None, :]
        x = np.maximum(x, 0.0) if place < len(net.layers) - 1 else x
    return x


def scalars(net: MLP, *inputs: np.ndarray) -> np.ndarray:
    return network(net, *inputs)[..., 0]


def some_batch(rows: int = ROWS) -> Batch:
    """Different numbers everywhere: goals of values and policies, an episode that was ended."""
    rng = np.random.default_rng(13)  # which leaves expectiles something on either side

    def of(size: int) -> np.ndarray:
        return rng.normal(size=(rows, size))

    reward = (np.arange(rows) % 3 == 1).astype(float)
    return Batch(
        observation=of(3),
        action=np.tanh(of(2)),
        next_observation=of(3),
        initial_observation=of(3),
        achieved=of(2),
        next_achieved=of(2),
        goal=of(2),
        policy_goal=of(2),
        reward=reward,
        mask=1.0 - reward,
        offset=np.arange(rows) % 4 + 1,
        ended=(np.arange(rows) == rows - 1).astype(float),
        extra_observations={"ahead": of(3), "way": of(3), "between": of(3)},
        extra_goals={"ahead": of(2), "way": of(2), "between": of(2)},
        extras={"action": np.tanh(of(2)), "offset": np.arange(rows) % 4 // 2},
    )


def doubles(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: np.array(leaf, np.float64), tree)


def slopes(loss: Loss, params: Any, target: Any, batch: Batch) -> list[np.ndarray]:
    """Central differences by every parameter, those without a gradient held."""
    still, found = doubles(params), []
    for leaf in jax.tree.leaves(params):
        slope = np.zeros_like(leaf)
        for place in np.ndindex(leaf.shape):
            value, ends = leaf[place], []
            for side in (STEP, -STEP):
                leaf[place] = value + side
                ends.append(loss(params, still, target, batch))
            leaf[place] = value
            slope[place] = (ends[0] - ends[1]) / (2 * STEP)
        found.append(slope)
    return found


def assert_same_updates(
    name: str, loss: Loss, batch: Batch | None = None, **changes: Any
) -> dict[str, float]:
    """The parameters agree after five updates with a step of the targets after every second. The
    largest change of all is returned, and how far both are apart.
    """
    batch = some_batch() if batch is None else batch
    small = {"architecture.hidden": (8, 8), "learning_rate": RATE}
    algorithm = override(algorithms.get(name).build(SETTINGS), small | changes)
    state = algorithm.init(jax.random.key(1), SPEC)
    start, params, target = doubles(state.params), doubles(state.params), doubles(state.target)
    kinds = {"f": jnp.float32, "i": jnp.int32}
    seen = jax.tree.map(lambda x: jnp.asarray(x, kinds[x.dtype.kind]), batch)
    update, leaves = jax.jit(algorithm.update), jax.tree.leaves(params)
    first, second = ([np.zeros_like(leaf) for leaf in leaves] for _ in range(2))
    for count in range(1, UPDATES + 1):
        state, _ = update(state, seen, jax.random.key(count))
        for place, slope in enumerate(slopes(loss, params, target, batch)):
            first[place] = 0.9 * first[place] + 0.1 * slope
            second[place] = 0.999 * second[place] + 0.001 * slope**2
            mean, square = first[place] / (1 - 0.9**count), second[place] / (1 - 0.999**count)
            leaves[place] -= RATE * mean / (np.sqrt(square) + 1e-8)
        if count % SETTINGS.target_period == 0:
            state = algorithm.update_target(state)
            target = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, target, params)

    def farthest(one: Any, other: Any) -> float:
        return max(jax.tree.leaves(jax.tree.map(lambda a, b: np.abs(a - b).max(), one, other)))

    found = {"moved": farthest(params, start), "apart": farthest(params, doubles(state.params))}
    assert found["moved"] > 3 * RATE
    np.testing.assert_allclose(found["apart"], 0.0, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(farthest(target, doubles(state.target)), 0.0, atol=1e-6)
    return found
