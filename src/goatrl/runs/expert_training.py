"""How the experts were made: online DDPG+HER on the standard tasks, one policy and one critic."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, TypedDict

import jax
import numpy as np
from safetensors.numpy import save

from goatrl import algorithms, tasks
from goatrl.disk import checkpoint
from goatrl.disk.files import write_atomically, write_text
from goatrl.disk.reading import typed
from goatrl.evaluation.episodes import success_rate
from goatrl.learn.parameters import described, override
from goatrl.learn.values import CostQ
from goatrl.runs.folder import Agents, check_seeds, restore_agents
from goatrl.runs.online import OnlinePlan, OnlineRun
from goatrl.tasks import TaskGroup
from goatrl.training.online import Schedule
from goatrl.types import Settings, unknown

TEST_EPISODES = 1_000
TEST_SEED = (2,)  # training draws by (seed, round), evaluating by (1, round)


EVALUATE_EVERY = 10


def _group_of(robot: str) -> TaskGroup:
    """The first group of a robot: all share its dimensions and its standard task."""
    groups: dict[str, TaskGroup] = {}
    for group in tasks.groups().values():
        if group.family.expert is not None and group.collection is not None:
            groups.setdefault(group.family.name, group)
    if robot not in groups:
        raise unknown("expert", robot, groups)
    return groups[robot]


def plan(robot: str, seed: int = 0, rounds: int | None = None) -> OnlinePlan:
    group = _group_of(robot)
    recipe = group.family.expert
    assert recipe is not None
    assert group.collection is not None
    settings = Settings(target_period=recipe.target_period, polyak=0.95)
    algorithm = override(algorithms.get("ddpg_her").build(settings), {"learning_rate": 1e-3})
    if recipe.cost:
        algorithm = dataclasses.replace(algorithm, value=CostQ())
    schedule = Schedule(
        updates=recipe.updates,
        batch_size=recipe.batch_size,
        noise=recipe.noise,
        random=recipe.random,
        reward_offset=-1.0,
    )
    rounds = recipe.rounds if rounds is None else rounds
    about = {
        "expert": robot,
        "algorithm": "ddpg_her",
        **described(algorithm),
        "revisions": {"ddpg_her": algorithms.get("ddpg_her").revision},
        "schedule": dataclasses.asdict(schedule),
        "seed": seed,
        "rounds": rounds,
        "physics": group.physics.strip(),
    }
    return OnlinePlan(
        [(algorithm, seed)], group, [group.collection.task], schedule, rounds, EVALUATE_EVERY, about
    )


class _About(TypedDict):
    """What a folder must say of itself so that its agent can be loaded."""

    expert: str
    seed: int
    rounds: int


def agents(run: OnlineRun) -> Agents:
    """The agent of a run of `goat expert train` that was evaluated best. Its task is a standard
    one, of no group.
    """
    about = run.about()
    typed(_About, about)
    check_seeds([about["seed"]])
    chosen = plan(about["expert"], about["seed"], about["rounds"])
    state = restore_agents(run.best_path, chosen.members, chosen.group.spec)
    unfinished = run.unfinished(chosen.rounds, "goat expert train")
    return Agents(
        run.folder,
        f"{about['expert']} expert",
        chosen.members,
        state,
        chosen.group.spec,
        None,
        unfinished,
    )


def export(run: OnlineRun, chosen: OnlinePlan, folder: Path) -> dict[str, Any]:
    """Write the best policy of a finished run and its card; the card."""
    state = restore_agents(run.best_path, chosen.members, chosen.group.spec)
    success = success_rate(
        chosen.members, state, chosen.group, chosen.tasks, TEST_SEED, TEST_EPISODES
    )
    robot = chosen.group.family.name
    best = checkpoint.describe(run.best_path)
    card = {
        **chosen.about,
        "round": best["round"],
        "steps": best["round"] * chosen.schedule.episodes * chosen.group.spec.horizon,
        "success": round(float(success[0]), 4),
        "episodes": TEST_EPISODES,
        "curve": run.curves()[chosen.members[0][1]],
        "versions": best["versions"],
    }
    policy = jax.tree.map(lambda leaf: np.asarray(leaf)[0], state.params["policy"])
    arrays = {
        f"policy/{number}/{name}": array
        for number, layer in enumerate(policy.layers)
        for name, array in layer.items()
    }
    for name in ("observation", "goal"):
        for kind in ("mean", "std"):
            arrays[f"{name}/{kind}"] = np.asarray(getattr(state.normalizer, f"{name}_{kind}"))[0]
    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    write_atomically(folder / f"{robot}.safetensors", lambda file: file.write(content))
    write_text(folder / f"{robot}.json", json.dumps(card, indent=1))
    return card
