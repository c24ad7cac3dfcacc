"""The six PointReach datasets, made by the project itself: upper half circle, plus two lower goals
in the imbalanced ones.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from goatrl.data.collect import explore
from goatrl.tasks import pointreach
from goatrl.types import Episodes, make_episodes, unknown

TOP_SPEED = 0.8
SLOWING = 2.5
NOISE = 0.2
RANDOM_ACTION = 0.3
LOWER_GOALS = (
    3,
    6,
)  # of the ten lower goals, those that the imbalanced datasets show, as in the authors' files


@dataclasses.dataclass(frozen=True)
class Recipe:
    repeats: int  # episodes for each upper goal
    expert: bool
    lower: int = 0  # episodes for each lower goal that is shown


RECIPES = {
    "pointreach-expert-10": Recipe(1, expert=True),
    "pointreach-non-expert-10": Recipe(1, expert=False),
    "pointreach-non-expert-50": Recipe(5, expert=False),
    "pointreach-imbalanced-expert-10": Recipe(1, expert=True, lower=1),
    "pointreach-imbalanced-non-expert-10": Recipe(1, expert=False, lower=1),
    "pointreach-imbalanced-non-expert-50": Recipe(5, expert=False, lower=2),
}


def make(name: str, seed: int = 0) -> Episodes:
    """A dataset by name, the same bytes for the same seed."""
    if name not in RECIPES:
        raise unknown("dataset", name, RECIPES)
    recipe = RECIPES[name]
    goals = np.repeat(pointreach.half_circle(pointreach.DATA_RADIUS), recipe.repeats, axis=0)
    below = pointreach.half_circle(pointreach.DATA_RADIUS, lower=True)[list(LOWER_GOALS)]
    goals = np.concatenate([goals, np.repeat(below, recipe.lower, axis=0)])
    generator = np.random.default_rng([seed, sorted(RECIPES).index(name)])
    bound = pointreach.DATA_RADIUS + pointreach.MARGIN
    position = np.zeros_like(goals)
    positions, actions = [position], []
    for _ in range(pointreach.HORIZON):
        action = behaviour(position, goals, generator, recipe.expert)
        position = np.clip(position + action, -bound, bound)
        actions.append(action)
        positions.append(position)
    observations = np.stack(positions, axis=1)
    return make_episodes(observations, observations, np.stack(actions, axis=1), goals)


def behaviour(
    position: np.ndarray, goals: np.ndarray, generator: np.random.Generator, expert: bool
) -> np.ndarray:
    """The expert walks straight at the goal, as fast as the longer axis allows; the non-expert is
    slow, noisy and often random.

    Both are as the authors' files show them: their clean actions are (g − s) / max(1, |g − s|_∞),
    and the median speed of their noisy actions at distance d follows 0.8 d² / (d² + 2.5).
    """
    towards = goals - position
    if expert:
        return towards / np.maximum(np.abs(towards).max(axis=-1, keepdims=True), 1.0)
    squared = (towards**2).sum(axis=-1, keepdims=True)
    speed = TOP_SPEED * squared / (squared + SLOWING)
    direction = towards / np.sqrt(np.maximum(squared, 1e-12))
    return explore(speed * direction, generator, NOISE, RANDOM_ACTION)
