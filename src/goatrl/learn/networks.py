"""Multi-layer perceptrons as pytrees. An ensemble is one more leading axis.

An `MLP` holds its layers, {"w", "b"} each, and what to do before and between them, which the
compiler knows. Whoever applies it needs no more than that.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from goatrl.learn import fused
from goatrl.types import GoatError, Pytree, Spec, pytree, static

_MATRIX = jax.tree_util.DictKey("w")
ACTIVATIONS = {"relu": jax.nn.relu, "gelu": jax.nn.gelu, "tanh": jnp.tanh, "silu": jax.nn.silu}


INPUTS = ("absolute", "difference", "goal-frame", "upright-frame", "bounded-frame")
WITH_HEIGHTS = INPUTS[-2:]


@dataclasses.dataclass(frozen=True)
class View:
    """What a network sees of an observation and a goal. Both come normalised, and the columns that
    are named here are normalised like the goal, so that differences mean something.
    """

    achieved: tuple[int, ...]  # columns of the observation that are the achieved goal
    # columns that are positions in the space of goals, one coordinate after the other, and are
    # seen relative to the achieved goal; None: all columns are seen as they are
    positions: tuple[int, ...] | None = None
    # axes of the space of goals along which φ(s) is seen as it is nevertheless
    vertical: tuple[int, ...] = ()
    bounded: bool = False  # whether it is seen within the range of the data when an agent acts

    def __call__(
        self, observation: jax.Array, goal: jax.Array, *others: jax.Array
    ) -> tuple[jax.Array, ...]:
        """(s, g − φ(s), …), or the same with all positions as seen from φ(s), and its heights."""
        now = observation[:, np.array(self.achieved)]
        if self.positions is None:
            return observation, goal - now, *others
        size = len(self.achieved)
        positions = [
            observation[:, np.array(self.positions[first : first + size])] - now
            for first in range(0, len(self.positions), size)
        ]
        as_they_are = [column for column in range(observation.shape[1]) if column not in self.axes]
        heights = [now[:, np.array(self.vertical)]] if self.vertical else []
        kept = observation[:, np.array(as_they_are, int)]
        return kept, *positions, *heights, goal - now, *others

    def within(
        self, observation: jax.Array, goal: jax.Array, lowest: jax.Array, highest: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """All places moved along the vertical axes until φ(s) is between lowest and highest, both
        (goal_dim,). What is seen relative to φ(s) stays as it is. Nothing is normalised.
        """
        now = observation[:, np.array(self.achieved)]
        moved = jnp.clip(now, lowest[None], highest[None]) - now
        still = jnp.zeros_like(moved[:, :1])
        axes = [self.axes.get(column, -1) for column in range(observation.shape[1])]
        return observation + jnp.concatenate([moved, still], axis=1)[
            :, np.array(axes)
        ], goal + moved

    @property
    def fewer(self) -> int:
        """By how many numbers it is smaller than observation and goal."""
        return 0 if self.positions is None else len(self.achieved) - len(self.vertical)

    @property
    def axes(self) -> dict[int, int]:
        """The columns that are normalised like a coordinate of the goal, and which it is."""
        columns = (*self.achieved, *(self.positions or ()))
        return {column: place % len(self.achieved) for place, column in enumerate(columns)}


@pytree
class Architecture:
    """The shape of every network of an agent, and what it sees.

    `inputs` is what networks see of an observation s and a goal g: both (absolute), s and g − φ(s)
    (difference), s and g as seen from φ(s), the achieved goal (goal-frame), the same with the
    heights of φ(s) (upright-frame), or with heights that are brought back into the range of the
    data when an agent acts (bounded-frame). For all but the first, `achieved` names the columns of
    s that are φ(s), `positions` those of other places in the space of goals, and `vertical` the
    axes of that space that are heights.

    An agent can have several `policies`. Each imitates the data for itself, and the agent does what
    they do on average: where the data says nothing, they disagree, and their mean errs less.
    """

    hidden: tuple[int, ...] = static(default=(256, 256, 256))
    activation: str = static(default="relu")
    layer_norm: bool = static(default=False)  # after each activation
    inputs: str = static(default="absolute")
    achieved: tuple[int, ...] | None = static(default=None)
    positions: tuple[int, ...] | None = static(default=None)
    vertical: tuple[int, ...] | None = static(default=None)
    policies: int = static(default=1)

    @property
    def view(self) -> View | None:
        if self.inputs == "absolute":
            return None
        # Not checked before: numbers are set one after the other.
        if not self.achieved:
            raise GoatError(
                f"architecture.inputs={self.inputs} needs architecture.achieved, the columns of an "
                "observation that are the achieved goal; --inputs finds them"
            )
        positions = (self.positions or ()) if self.inputs.endswith("-frame") else None
        keeps_heights = self.inputs in WITH_HEIGHTS
        vertical = (self.vertical or ()) if keeps_heights else ()
        if keeps_heights and not vertical:
            raise GoatError(
                f"architecture.inputs={self.inputs} needs architecture.vertical, the numbers of a "
                "goal that are heights, counted from 0; if none is a height, use goal-frame"
            )
        if positions and len(positions) % len(self.achieved):
            raise GoatError(
                "architecture.positions must name as many columns as a goal has numbers, or a "
                f"multiple of that ({len(self.achieved)}), not {len(positions)}"
            )
        return View(self.achieved, positions, vertical, self.inputs == "bounded-frame")

    def __post_init__(self) -> None:
        if self.inputs not in INPUTS:
            raise GoatError(
                f"architecture.inputs must be one of {', '.join(INPUTS)}, not '{self.inputs}'"
            )
        if self.activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise GoatError(
                f"architecture.activation must be one of {known}, not '{self.activation}'"
            )
        if self.policies < 1:
            raise GoatError(f"architecture.policies must be at least 1, not {self.policies}")
        if not self.hidden or min(self.hidden) < 1:
            sizes = list(self.hidden)
            raise GoatError(f"architecture.hidden needs at least one positive size, not {sizes}")


def view_of(algorithm: Any) -> View | None:
    """What the networks of an algorithm see, if it says so."""
    return getattr(getattr(algorithm, "architecture", None), "view", None)


def check_view(algorithm: Any, spec: Spec) -> None:
    """Refuse columns that observations and goals of such sizes do not have."""
    view = view_of(algorithm)
    if view is None:
        return
    columns = (*view.achieved, *(view.positions or ()))
    if len(view.achieved) != spec.goal_dim:
        raise GoatError(
            f"architecture.achieved must name {spec.goal_dim} columns, one for each number of a "
            f"goal, not {len(view.achieved)}"
        )
    axes = set(view.vertical)
    if len(axes) < len(view.vertical) or not axes <= set(range(spec.goal_dim)):
        raise GoatError(
            f"architecture.vertical must name different numbers of a goal, from 0 to "
            f"{spec.goal_dim - 1}, not {', '.join(map(str, view.vertical))}"
        )
    if shared := set(view.achieved) & set(view.positions or ()):
        raise GoatError(
            f"architecture.positions names {', '.join(map(str, sorted(shared)))}, which the "
            "achieved goal has; name other places"
        )
    if len(set(columns)) < len(columns) or not set(columns) <= set(range(spec.observation_dim)):
        raise GoatError(
            "architecture.achieved and architecture.positions must name different columns from 0 "
            f"to {spec.observation_dim - 1}, not {', '.join(map(str, columns))}"
        )


@jax.tree_util.register_pytree_with_keys_class
@dataclasses.dataclass(frozen=True)
class MLP:
    """The layers of a network, leaves under their numbers, and what to do before and between
    them.
    """

    layers: tuple[Pytree, ...]
    activation: str = "relu"
    view: View | None = None  # of its first two inputs, an observation and a goal

    def tree_flatten_with_keys(
        self,
    ) -> tuple[list[tuple[Any, Pytree]], tuple[str, View | None]]:
        keys = [jax.tree_util.SequenceKey(number) for number in range(len(self.layers))]
        return list(zip(keys, self.layers, strict=True)), (self.activation, self.view)

    @classmethod
    def tree_unflatten(cls, about: tuple[str, View | None], layers: Any) -> MLP:
        return cls(tuple(layers), *about)


def init_mlp(key: jax.Array, inputs: int, outputs: int, architecture: Architecture) -> MLP:
    """Xavier-uniform weights and zero biases, for `inputs` numbers, of which an observation and a
    goal come first.
    """
    view = architecture.view
    seen = inputs if view is None else inputs - view.fewer
    sizes = (seen, *architecture.hidden, outputs)
    keys = jax.random.split(key, len(sizes) - 1)
    layers: list[dict[str, jax.Array]] = [
        {
            "w": jax.nn.initializers.glorot_uniform()(k, (n, m), jnp.float32),
            "b": jnp.zeros((m,), jnp.float32),
        }
        for k, n, m in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]
    if architecture.layer_norm:
        for layer, size in zip(layers[:-1], architecture.hidden, strict=True):
            layer |= {
                "scale": jnp.ones((size,), jnp.float32),
                "shift": jnp.zeros((size,), jnp.float32),
            }
    return MLP(tuple(layers), architecture.activation, view)


def init_ensemble(
    key: jax.Array, size: int, inputs: int, outputs: int, architecture: Architecture
) -> MLP:
    members: MLP = jax.vmap(lambda k: init_mlp(k, inputs, outputs, architecture))(
        jax.random.split(key, size)
    )
    return members


def without_gradient(networks: Pytree) -> Pytree:
    """The same networks for passes through which no gradient flows.

    Where that is faster, their matrices have half precision: its mantissa is that of TF32, to which
    a GPU rounds the factors of every product anyway.
    """
    fixed = jax.lax.stop_gradient(networks)
    if not fused.available():
        return fixed
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: leaf.astype(jnp.float16) if path[-1:] == (_MATRIX,) else leaf, fixed
    )


def mlp(network: MLP, *inputs: jax.Array) -> jax.Array:
    """The network on the concatenated inputs, without a last activation: (B, …) → (B, outputs).

    Products have the precision of the network's matrices. Their sums, and what follows, have single
    precision: an advantage is a difference of values of up to 50, of which half precision keeps no
    more than one digit behind the point.
    """
    inputs = inputs if network.view is None else network.view(*inputs)
    if fused.fits(network.layers, network.activation, inputs[0].shape[0]):
        return fused.forward(network.layers, *inputs)
    *hidden, last = network.layers
    x = jnp.concatenate(inputs, axis=-1)
    activation = ACTIVATIONS[network.activation]
    for layer in hidden:
        x = activation(_affine(layer, x))
        if "scale" in layer:
            x = layer_norm(x, layer["scale"], layer["shift"])
    return _affine(last, x)


def _affine(layer: Pytree, x: jax.Array) -> jax.Array:
    weights = layer["w"]
    product = jnp.matmul(x.astype(weights.dtype), weights, preferred_element_type=jnp.float32)
    return product + layer["b"][None]


def layer_norm(x: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
    """Zero mean and unit variance over the features of each row, then scaled and shifted."""
    mean, variance = jnp.mean(x, axis=-1, keepdims=True), jnp.var(x, axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-6) * scale[None] + shift[None]


def scalar_ensemble(networks: MLP, *inputs: jax.Array) -> jax.Array:
    """N scalar networks on the same inputs: (B, …) → (N, B)."""
    return jax.vmap(lambda member: mlp(member, *inputs)[:, 0])(networks)


def init_policy(key: jax.Array, spec: Spec, architecture: Architecture) -> MLP:
    """One network, or an ensemble of as many as there are policies."""
    sizes = spec.observation_dim + spec.goal_dim, spec.action_dim
    if architecture.policies == 1:
        return init_mlp(key, *sizes, architecture)
    return init_ensemble(key, architecture.policies, *sizes, architecture)


def are_several(policy: MLP) -> bool:
    """Whether it is an ensemble of policies."""
    return bool(policy.layers[0]["w"].ndim == 3)


def policy_actions(policies: MLP, observation: jax.Array, goal: jax.Array) -> jax.Array:
    """What each of several policies does: (B, …) → (N, B, action_dim)."""
    return jax.vmap(lambda each: jnp.tanh(mlp(each, observation, goal)))(policies)


def policy_action(policy: MLP, observation: jax.Array, goal: jax.Array) -> jax.Array:
    """π(s, g) ∈ [-1, 1], the mean of several policies: (B, …) → (B, action_dim)."""
    if are_several(policy):
        return jnp.mean(policy_actions(policy, observation, goal), axis=0)
    return jnp.tanh(mlp(policy, observation, goal))
