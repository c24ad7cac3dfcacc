"""A dataset together with what is known about it."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from goatrl import data as datasets
from goatrl import tasks
from goatrl.disk.reading import text_of
from goatrl.tasks import TaskGroup
from goatrl.types import (
    ActionBounds,
    Episodes,
    GoatError,
    Layout,
    Settings,
    Spec,
    check_goal_threshold,
)

OUTLIERS = 0.01  # share of action components beyond [-1, 1] that says nothing about their bounds


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """What an agent is trained on. Without a task group there is nothing to evaluate it on."""

    episodes: Episodes  # with actions in [-1, 1]
    spec: Spec
    settings: Settings
    group: TaskGroup | None
    # what the actions of its episodes, which lie in [-1, 1], were in the data; None if the same
    action_bounds: ActionBounds | None = None
    bounds_declared: bool = False  # or else they are the range of the actions
    unscaled: Episodes | None = None  # those of the data, if their actions are others

    @property
    def recorded(self) -> Episodes:
        """The episodes as the data has them."""
        return self.episodes if self.unscaled is None else self.unscaled

    @property
    def layout(self) -> Layout | None:
        """Where observations hold the achieved goal, if they do: as the robot declares, or as is
        found in the data.
        """
        if self.group is not None and self.group.family.layout is not None:
            return self.group.family.layout
        return self.episodes.layout()

    def seen_as(self, inputs: str) -> dict[str, Any]:
        """The hyper-parameters with which networks have such inputs (`networks.INPUTS`)."""
        return seen_as(inputs, None if inputs == "absolute" else self.layout)

    def mapped_by(self, symmetry: str | Path | None) -> dict[str, str]:
        """The hyper-parameters with which training knows a symmetry (`declared_symmetry`)."""
        if symmetry is None:
            return {}
        return {"symmetry": declared_symmetry(symmetry, self.group, self.action_bounds)}


def seen_as(inputs: str, layout: Layout | None) -> dict[str, Any]:
    """The same of a problem with such a layout."""
    if inputs == "absolute":
        return {}
    if layout is None:
        raise GoatError(
            f"{inputs} inputs need the achieved goal in the observation, and no columns of these "
            "observations are equal to it; append it to them"
        )
    with_heights = inputs in ("upright-frame", "bounded-frame")
    if with_heights and layout.vertical == ():
        inputs = "goal-frame"  # no height matters to this robot
    found: dict[str, Any] = {
        "architecture.inputs": inputs,
        "architecture.achieved": layout.achieved,
    }
    if inputs.endswith("-frame") and layout.positions:
        found["architecture.positions"] = layout.positions
    if with_heights and layout.vertical:
        found["architecture.vertical"] = layout.vertical
    return found


def declared_symmetry(
    source: str | Path,
    group: TaskGroup | None,
    bounds: ActionBounds | None = None,
    kinds: Collection[str] | None = None,
) -> str:
    """A symmetry as `learn.symmetry` reads it: of a TOML file, or "declared" for that of the task
    group's robot; all of it, or some kinds of maps alone. It is declared in the units of the data;
    where actions are scaled from bounds, so are its sums.
    """
    if str(source) == "declared":
        found = None if group is None else group.family.symmetry
        if found is None:
            what = "these data have no task group" if group is None else f"{group.name} has none"
            raise GoatError(f"no symmetry is declared ({what}); specify a TOML file")
    else:
        try:
            found = tomllib.loads(text_of(Path(source)))
        except (OSError, ValueError, RecursionError) as error:
            hint = "" if str(source).endswith(".toml") else " ('declared' is the robot's own)"
            raise GoatError(f"cannot read the symmetry in {source}{hint}: {error}") from None
        if not found:
            raise GoatError(f"{source} declares no symmetry; docs/inputs.md shows how")
    if kinds is not None:
        found = {kind: maps for kind, maps in found.items() if kind in kinds}
    if bounds is not None:
        found = _of_scaled_actions(found, bounds)
    return json.dumps(found, sort_keys=True, separators=(",", ":"), default=str)


def _of_scaled_actions(declared: Mapping[str, Any], bounds: ActionBounds) -> dict[str, Any]:
    """The same maps of actions in [-1, 1]. What is malformed stays so; it is refused later."""

    def scaled(column: str, total: float) -> float:
        low, high = bounds.low[int(column)], bounds.high[int(column)]
        return 2.0 * (total - low - high) / (high - low)

    def sums(actions: Any) -> Any:
        try:
            return {column: scaled(column, total) for column, total in actions.items()}
        except (AttributeError, IndexError, TypeError, ValueError):
            return actions

    _check_turned(declared.get("rotation"), bounds)
    reflections = declared.get("reflection")
    if not isinstance(reflections, list):
        return dict(declared)
    mapped = [
        {**each, "action": sums(each["action"])}
        if isinstance(each, dict) and "action" in each
        else each
        for each in reflections
    ]
    return {**declared, "reflection": mapped}


def _check_turned(rotations: Any, bounds: ActionBounds) -> None:
    """Refuse to turn actions that are scaled by different amounts, or not around 0. What is
    malformed is refused later.
    """
    for each in rotations if isinstance(rotations, list) else ():
        turned = each.get("action") if isinstance(each, dict) else None
        if not isinstance(turned, dict):
            continue
        if turned.get("places") or turned.get("angles"):
            raise GoatError("a rotation turns vectors of actions with bounds, not places or angles")
        try:
            pairs = [map(int, pair) for pair in turned.get("vectors", ())]
            ends = [{(bounds.low[axis], bounds.high[axis]) for axis in pair} for pair in pairs]
        except (IndexError, TypeError, ValueError):
            continue
        if any(len(pair) > 1 or any(low != -high for low, high in pair) for pair in ends):
            raise GoatError("a rotation turns actions whose bounds are the same, −b and b, only")


def open_problem(
    group: str | None, data: Path | None, goal_threshold: float | None = None
) -> Problem:
    """The dataset of a task group, or a file in its place, or data alone with a goal threshold,
    given or its own.
    """
    if goal_threshold is not None:
        check_goal_threshold(goal_threshold)
    if group is None:
        if data is None:
            raise GoatError(
                "specify a task group with --group (see `goat list`), or your own file with --data "
                "and --goal-threshold"
            )
        episodes = datasets.load(data)
        threshold = datasets.goal_threshold(data) if goal_threshold is None else goal_threshold
        if threshold is None:
            raise GoatError(
                "your own data needs --goal-threshold, the distance within which a goal counts as "
                "reached (or a --group that has one)"
            )
        return without_group(episodes, threshold, datasets.action_bounds(data, episodes))
    known = tasks.get(group)
    episodes = datasets.of_group(known) if data is None else datasets.load(data)
    bounds = None if data is None else datasets.action_bounds(data, episodes)
    if bounds is not None and not bounds.native:
        raise GoatError(
            f"{data} does not fit {group}: it declares other bounds of actions than -1 and 1, "
            "which robots take; train without --group"
        )
    spec = episodes.spec(known.spec.goal_threshold if goal_threshold is None else goal_threshold)
    known.check_fits(spec, str(data))
    return Problem(episodes, spec, known.settings, known)


def without_group(
    episodes: Episodes, goal_threshold: float, declared: ActionBounds | None
) -> Problem:
    """Data alone. Its actions are scaled to [-1, 1] from the bounds that are declared, or from
    their own range if more than a few exceed it.
    """
    recorded, actions = episodes, np.asarray(episodes.actions)
    taken = episodes.at(*episodes.steps())
    bounds = own_bounds(actions[taken]) if declared is None else declared
    if bounds is not None and bounds.native:
        bounds = None
    if bounds is not None:
        if len(bounds.low) != actions.shape[-1]:
            raise GoatError(
                f"there are bounds for {len(bounds.low)} numbers of an action, but actions have "
                f"{actions.shape[-1]}"
            )
        scaled = np.zeros_like(actions)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            scaled[taken] = bounds.scaled(actions[taken])
        if not np.isfinite(scaled).all():
            raise GoatError(
                "actions cannot be scaled from their bounds, which are too near to each other or "
                "too large; declare others"
            )
        episodes = dataclasses.replace(episodes, actions=scaled)  # type: ignore[arg-type]
    spec = episodes.spec(goal_threshold)
    unscaled = None if bounds is None else recorded
    return Problem(episodes, spec, Settings(), None, bounds, declared is not None, unscaled)


def own_bounds(actions: np.ndarray) -> ActionBounds | None:
    """The range of actions (N, action_dim) in every dimension, but −1 and 1 where they lie within;
    None if all do. A few that do not are outliers, by which nobody should scale all others.
    """
    inside = (np.abs(actions) > 1.0).mean(axis=0) <= OUTLIERS
    if inside.all():
        return None
    low, high = actions.min(axis=0).astype(np.float64), actions.max(axis=0).astype(np.float64)
    apart = np.where(low == high, 1.0, 0.0)  # what is constant has no range
    return ActionBounds.of(np.where(inside, -1.0, low - apart), np.where(inside, 1.0, high + apart))


def settings_of(group: str | None) -> Settings:
    """The paper's settings of a task group, or those of most groups for other data."""
    return Settings() if group is None else tasks.get(group).settings
