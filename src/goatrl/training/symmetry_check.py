"""Whether data agree with a declared symmetry, before anyone trusts it.

A small model of the dynamics is fitted on half of the episodes: from what is observed and done, how
every column of the observation changes. If the symmetry holds, it predicts the other half's
transitions seen through the map about as well as the transitions themselves.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax

from goatrl.learn.networks import MLP, Architecture, init_mlp, mlp
from goatrl.learn.symmetry import Map, Rotation
from goatrl.types import Episodes, GoatError

HIDDEN, UPDATES, BATCH, LEARNING_RATE = (128, 128), 3_000, 512, 2e-3
ROWS = 20_000  # held-out transitions that are looked at
FAMILIAR = 0.9  # share of them that counts as familiar
STRANGE = 0.2  # share of images below which they look like nothing in the data
LEAST = 100  # rows that are compared
# A column is broken if the model's error grows by more than this share of its mean change. What
# holds on Push, Pick, Reach and Slide data stays below 0.3, a wrong sign is above 0.5.
LIMIT = 0.4
# The model must explain this share of a column's changes, or it says nothing about it.
EXPLAINED = 0.3
# What varies less than this share of the median column counts as constant: its noise is no sign.
CONSTANT = 1e-2
INSIDE = 0.5  # percent of the data at either end of a column count as outside
# In units of standardised columns: a combination that varies less is a relation that observations
# obey, and images that are farther from it on average than ten times as much do not.
EXACT = 1e-3


@dataclasses.dataclass(frozen=True)
class Checked:
    """The model's mean error in each column, as a share of the mean change there."""

    original: np.ndarray
    image: np.ndarray
    rows: int
    changes: np.ndarray  # whether a column does, worth mentioning
    familiar: float  # share of the images that look like something in the data
    contradicted: tuple[int, ...]  # columns whose images break a relation of the data
    # signs that would make the error smaller by much, the best first: (space, column)
    suspects: tuple[tuple[str, int], ...] = ()

    @property
    def ratio(self) -> np.ndarray:
        return self.image / np.maximum(self.original, 1e-9)

    @property
    def telling(self) -> np.ndarray:
        """Columns about which the model says something."""
        return self.changes & (self.original < 1.0 - EXPLAINED)

    @property
    def broken(self) -> np.ndarray:
        return np.flatnonzero(self.telling & (self.image - self.original > LIMIT))

    @property
    def predicted(self) -> bool:
        """Whether the model finds nothing strange."""
        return not len(self.broken) and self.familiar >= STRANGE

    @property
    def holds(self) -> bool:
        return self.predicted and not self.contradicted


@dataclasses.dataclass(frozen=True)
class Transitions:
    """Rows of observations, actions and next observations."""

    before: np.ndarray
    action: np.ndarray
    after: np.ndarray

    @classmethod
    def of(cls, episodes: Episodes, chosen: np.ndarray, rows: np.random.Generator) -> Transitions:
        seen, actions = (np.asarray(each) for each in (episodes.observations, episodes.actions))
        episode, step = episodes.steps(chosen)
        now, then = episodes.at(episode, step), episodes.at(episode, step + 1)
        before, action, after = seen[now], actions[now], seen[then]
        order = rows.permutation(len(before))
        return cls(before[order], action[order], after[order])

    def through(self, chosen: Map, amount: np.ndarray) -> Transitions:
        return Transitions(
            chosen.apply("observation", self.before, amount),
            chosen.apply("action", self.action, amount),
            chosen.apply("observation", self.after, amount),
        )

    def only(self, kept: np.ndarray) -> Transitions:
        return Transitions(self.before[kept], self.action[kept], self.after[kept])


def check(episodes: Episodes, chosen: Map, seed: int = 0) -> Checked:
    """One map of a symmetry on a dataset."""
    if episodes.count < 4:
        raise GoatError(f"a symmetry needs at least 4 episodes to be checked, not {episodes.count}")
    _check_goals(episodes, chosen)
    rng = np.random.default_rng(seed)
    order = rng.permutation(episodes.count)
    half = episodes.count // 2
    fitted = Transitions.of(episodes, order[:half], rng)
    held_out = Transitions.of(episodes, order[half:], rng)
    amount = rng.uniform(*chosen.by, size=(len(held_out.before), 1)).astype(np.float32)
    kept = np.flatnonzero(_among_data(chosen, fitted, held_out.through(chosen, amount)))[:ROWS]
    if len(kept) < LEAST:
        raise GoatError(
            "this symmetry cannot be checked: hardly any transition lies where there are data when "
            "seen through it; choose a smaller range"
        )
    model = Model.fit(_places(episodes, chosen), fitted, seed)
    rows, amount = held_out.only(kept), amount[kept]
    known = np.concatenate([fitted.before, held_out.before])
    contradicted = _contradicted(known, rows.through(chosen, amount).before, episodes.count)
    plain, seen, familiar = _equally_familiar(model, fitted, rows, rows.through(chosen, amount))
    original, image = (
        model.error(rows.only(plain)),
        model.error(rows.only(seen).through(chosen, amount[seen])),
    )
    found = Checked(original, image, len(seen), model.changes, familiar, contradicted)
    if not found.telling.any():
        raise GoatError(
            "this symmetry cannot be checked: a small model cannot tell from these data how "
            "observations change"
        )
    if found.predicted:
        return found
    suspects = _suspects(chosen, model, rows.only(seen), amount[seen], found)
    return dataclasses.replace(found, suspects=suspects)


def _check_goals(episodes: Episodes, chosen: Map) -> None:
    """Refuse a map of goals that is not that of the columns which are the achieved goal."""
    layout = episodes.layout()
    if layout is None:
        return
    every = np.arange(episodes.count)
    seen = np.asarray(episodes.observations)[episodes.at(every, 0)]
    amount = np.random.default_rng(0).uniform(*chosen.by, (len(seen), 1)).astype(seen.dtype)
    columns = np.array(layout.achieved)
    images = chosen.apply("observation", seen, amount)[:, columns]
    if not np.allclose(images, chosen.apply("goal", seen[:, columns], amount), atol=1e-5):
        raise GoatError(
            f"this {chosen.kind} maps goals otherwise than columns {', '.join(map(str, columns))} "
            "of the observation, which are the achieved goal; make them agree"
        )


def _contradicted(known: np.ndarray, images: np.ndarray, episodes: int) -> tuple[int, ...]:
    """Columns that no longer fit together in the images of observations. Where every known one
    obeys a linear relation, such as that a distance is the difference of two places, images must.
    Numbers that are constant in an episode obey one by chance if there are no more episodes.
    """
    mean, std = known.mean(axis=0, dtype=np.float64), known.std(axis=0, dtype=np.float64)
    varying = np.flatnonzero(std == _floored(std))
    if episodes <= len(varying):
        return ()
    mean, std = mean[varying], std[varying]
    known, images = ((each[:, varying] - mean) / std for each in (known, images))
    variances, directions = np.linalg.eigh(np.atleast_2d(np.cov(known, rowvar=False)))
    relations = directions[:, variances < EXACT**2]
    off = np.abs(images @ relations @ relations.T).mean(axis=0)
    if off.max(initial=0.0) <= 10.0 * EXACT:
        return ()
    return tuple(varying[off > 0.1 * off.max()].tolist())


def _equally_familiar(
    model: Model, fitted: Transitions, rows: Transitions, images: Transitions
) -> tuple[np.ndarray, np.ndarray, float]:
    """For each image that looks like something in the data a transition that is as unusual, these
    images, and their share: a model errs more on what it has not seen, whether a symmetry holds or
    not.
    """
    known = model.standardised(fitted)[:ROWS]
    here, there = (_nearest(model.standardised(each), known) for each in (rows, images))
    order = np.argsort(here)
    among = np.flatnonzero(there <= here[order[int(FAMILIAR * (len(order) - 1))]])
    share = len(among) / len(there)
    if len(among) < LEAST:
        among = np.argsort(there)[:LEAST]
    alike = order[np.searchsorted(here[order], there[among]).clip(0, len(order) - 1)]
    return alike, among, share


def _nearest(points: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The distance of each point from the nearest known one."""

    @jax.jit
    def some(points: jax.Array, known: jax.Array) -> jax.Array:
        squares = (points**2).sum(axis=1)[:, None] + (known**2).sum(axis=1)[None]
        return jnp.sqrt(jnp.maximum((squares - 2 * points @ known.T).min(axis=1), 0.0))

    pieces = [points[first : first + 1_000] for first in range(0, len(points), 1_000)]
    return np.concatenate([np.asarray(some(each, known)) for each in pieces])


def _among_data(chosen: Map, fitted: Transitions, images: Transitions) -> np.ndarray:
    """Rows whose images lie where there are data, as far as the model sees where that is."""
    moved = np.flatnonzero(chosen.direction["observation"])
    low, high = np.percentile(fitted.before[:, moved], [INSIDE, 100.0 - INSIDE], axis=0)
    places = images.before[:, moved]
    return np.asarray(((places >= low) & (places <= high)).all(axis=1))


def _suspects(
    chosen: Map, model: Model, rows: Transitions, amount: np.ndarray, found: Checked
) -> tuple[tuple[str, int], ...]:
    """Single signs without which the error would shrink by a third of what it grew by."""
    whole = _growth(found.original, found.image)
    better: list[tuple[float, str, int]] = []
    for space in ("observation", "action"):
        for column in range(len(chosen.sign[space])):
            other = rows.through(chosen.otherwise(space, column), amount)
            growth = _growth(found.original, model.error(other))
            if growth < 2 / 3 * whole:
                better.append((growth, space, column))
    return tuple((space, column) for _, space, column in sorted(better))


def _growth(original: np.ndarray, image: np.ndarray) -> float:
    return float(np.log(np.maximum(image, 1e-9) / np.maximum(original, 1e-9)).clip(0.0).sum())


@dataclasses.dataclass(frozen=True)
class Model:
    """How observations change: a network, and the scales of what goes in and comes out."""

    places: tuple[np.ndarray, ...]  # columns of which it sees the differences alone
    network: MLP
    inputs: tuple[np.ndarray, np.ndarray]
    change: np.ndarray
    changes: np.ndarray

    def standardised(self, rows: Transitions) -> np.ndarray:
        mean, std = self.inputs
        return np.asarray((_seen(self.places, rows) - mean) / std, np.float32)

    @classmethod
    def fit(cls, places: tuple[np.ndarray, ...], rows: Transitions, seed: int) -> Model:
        inputs, changes = _seen(places, rows), rows.after - rows.before
        mean, std = inputs.mean(axis=0), _floored(inputs.std(axis=0))
        spread = np.abs(changes - changes.mean(axis=0)).mean(axis=0)
        change = _floored(spread)
        shape = Architecture(HIDDEN)
        network = init_mlp(jax.random.key(seed), inputs.shape[1], changes.shape[1], shape)
        fitted = _fit(
            network,
            jnp.asarray((inputs - mean) / std, jnp.float32),
            jnp.asarray(changes / change, jnp.float32),
            jax.random.key(seed + 1),
        )
        return cls(places, fitted, (mean, std), change, spread == change)

    def error(self, rows: Transitions) -> np.ndarray:
        """The mean absolute error in each column, in units of the mean change there."""
        predicted = mlp(self.network, jnp.asarray(self.standardised(rows)))
        truth = (rows.after - rows.before) / self.change
        return np.asarray(np.abs(np.asarray(predicted) - truth).mean(axis=0), np.float64)


def _floored(spread: np.ndarray) -> np.ndarray:
    return np.maximum(spread, CONSTANT * np.median(spread) + 1e-12)


def _places(episodes: Episodes, chosen: Map) -> tuple[np.ndarray, ...]:
    """The places that a map turns, each coordinate for itself. Of a reflection: columns with a sum,
    and those of the achieved goal, as a mirror through the origin has a sum of 0.
    """
    if isinstance(chosen, Rotation):
        turn = chosen.turn["observation"][chosen.places]
        return tuple(chosen.places[turn == each] for each in (-1.0, 1.0))
    if chosen.kind != "reflection":
        return ()
    layout = episodes.layout()
    placed = chosen.offset["observation"] != 0.0
    if layout is not None:
        columns = np.array(layout.achieved)
        placed[columns] |= chosen.sign["observation"][columns] < 0.0
    return (np.flatnonzero(placed),)


def _seen(places: tuple[np.ndarray, ...], rows: Transitions) -> np.ndarray:
    """What the model is given. Of places that are turned it gets the differences alone: data that
    lie on one side of a mirror say nothing about the other, but for what is the same on both.
    """
    before, firsts = rows.before.copy(), []
    for axis in places:
        if len(axis):
            firsts.append(axis[0])
            before[:, axis[1:]] -= before[:, axis[:1]]
    before = np.delete(before, firsts, axis=1)
    return np.concatenate([before, rows.action], axis=1)


@jax.jit
def _fit(network: MLP, inputs: jax.Array, changes: jax.Array, key: jax.Array) -> MLP:
    optimizer = optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, UPDATES))

    def loss(network: MLP, rows: jax.Array) -> jax.Array:
        return jnp.mean(optax.huber_loss(mlp(network, inputs[rows]), changes[rows]))

    def update(carry: tuple[MLP, optax.OptState], key: jax.Array) -> tuple[tuple, None]:
        network, state = carry
        rows = jax.random.randint(key, (BATCH,), 0, len(inputs))
        slopes = jax.grad(loss)(network, rows)
        steps, state = optimizer.update(slopes, state)
        return (optax.apply_updates(network, steps), state), None

    start = (network, optimizer.init(network))
    (network, _), _ = jax.lax.scan(update, start, jax.random.split(key, UPDATES))
    return network
