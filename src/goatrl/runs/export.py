"""A trained policy as a file that needs neither JAX nor goatrl: an ONNX graph, or a Python module
that imports NumPy alone. Both are compared with JAX before anyone gets them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import goatrl
from goatrl.learn import normalize
from goatrl.learn.normalize import CLIP, Normalizer
from goatrl.runs import numpy_policy, onnx_policy
from goatrl.runs.folder import Agents
from goatrl.runs.graph import Policy, trace
from goatrl.types import ActionBounds, Algorithm, GoatError, TrainState, unknown

CHECKED, TOLERANCE = 10_000, 1e-5  # inputs, and the largest difference of actions
ROUNDING, MOST = 4, 1e-4  # where JAX itself rounds more: times its error, and the largest of all
SUFFIXES = {"onnx": ".onnx", "numpy": ".py"}


@dataclasses.dataclass(frozen=True)
class Exported:
    """A policy as the content of a file."""

    content: bytes
    about: Mapping[str, str | int]
    difference: float  # from JAX, the largest of `CHECKED` inputs
    checked_with: str  # what ran it


def check_format(name: str) -> None:
    if name not in SUFFIXES:
        raise unknown("format", name, SUFFIXES)


def export(agents: Agents, seed: int, format: str) -> Exported:
    """One agent in a format of `SUFFIXES`, found to act as it does in JAX."""
    check_format(format)
    graph = trace(_acting(agents, seed), agents.spec)
    about: dict[str, str | int] = {
        "goatrl": goatrl.__version__,
        "algorithm": agents.label,
        "seed": seed,
        "updates": agents.step,
        "observation_dim": agents.spec.observation_dim,
        "goal_dim": agents.spec.goal_dim,
        "action_dim": agents.spec.action_dim,
    }
    if format == "onnx":
        about["opset"] = onnx_policy.OPSET
        content = onnx_policy.write(graph, agents.spec, about)
        checked_with, policy = onnx_policy.run(content)
    else:
        content = numpy_policy.write(graph, agents.spec, about)
        checked_with, policy = "NumPy", numpy_policy.run(content)
    difference = _compare(policy, agents, seed)
    return Exported(content, about, difference, checked_with)


def _acting(agents: Agents, seed: int) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """What an agent does, in the units of its data: as `Agents.policy`, for JAX to trace."""
    act, bounds = partial(normalize.act, *agents.agent(seed)), agents.action_bounds
    if bounds is None:
        return act
    low, high = (jnp.asarray(each, jnp.float32)[None] for each in (bounds.low, bounds.high))
    return lambda observation, goal: low + (high - low) * (act(observation, goal) + 1.0) / 2.0


def _compare(policy: Policy, agents: Agents, seed: int) -> float:
    """The largest difference from the agent in JAX, of actions in [-1, 1], if it is small
    enough.
    """
    algorithm, state = agents.agent(seed)
    inputs, bounds = _inputs(state.normalizer), agents.action_bounds
    with jax.default_matmul_precision("float32"):  # a GPU would round to TF32
        found, expected = policy(*inputs), agents.policy(seed)(*inputs)
        if bounds is not None:
            found, expected = bounds.scaled(found), bounds.scaled(expected)
        difference = _largest(found - expected)
        if difference <= TOLERANCE + _of_units(bounds):
            return difference
        # A steep policy magnifies rounding: that of JAX, and as much that of others.
        rounding = ROUNDING * _rounding(algorithm, state, inputs, expected)
    if difference <= min(rounding, MOST):
        return difference
    raise GoatError(
        f"the exported policy differs from JAX by {difference:.1e}, which rounding does not "
        "explain, so nothing was written; if its training diverged, train it again"
    )


def _of_units(bounds: ActionBounds | None) -> float:
    """How much of an action in [-1, 1] single precision cannot tell in the units of the data: much
    if they lie close together and far from zero.
    """
    if bounds is None:
        return 0.0
    low, high = np.array(bounds.low), np.array(bounds.high)
    spacing = np.spacing(np.maximum(np.abs(low), np.abs(high)).astype(np.float32))
    return float((4.0 * spacing / (high - low)).max())


def _inputs(known: Normalizer) -> list[np.ndarray]:
    """Observations and goals: half as the agent knows them, half far out, where they are
    clipped.
    """
    rng = np.random.default_rng(0)
    spread = np.where(np.arange(CHECKED) % 2, 1.0, 1.5 * CLIP)[:, None]
    moments = (
        (known.observation_mean, known.observation_std),
        (known.goal_mean, known.goal_std),
    )
    return [
        (mean + std * spread * rng.standard_normal((CHECKED, len(mean)))).astype(np.float32)
        for mean, std in ((np.asarray(mean), np.asarray(std)) for mean, std in moments)
    ]


def _rounding(
    algorithm: Algorithm, state: TrainState, inputs: Sequence[np.ndarray], expected: np.ndarray
) -> float:
    """How far an agent in JAX is from itself in double precision."""
    with jax.enable_x64(True):
        double = jax.tree.map(
            lambda leaf: leaf.astype(np.float64) if leaf.dtype == np.float32 else leaf,
            (state, *inputs),
        )
        return _largest(np.asarray(normalize.act(algorithm, *double)) - expected)


def _largest(differences: np.ndarray) -> float:
    return float(np.abs(differences).max())
