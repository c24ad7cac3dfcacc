"""Online fine-tuning: trained agents continue to learn on all tasks of their group, or in an
environment of the user's own, without their training data.

They are fine-tuned with DDPG+HER, whatever they were trained with, or with their own algorithm
(paper, appendix "Online Fine-tuning").
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec

from goatrl import algorithms, tasks
from goatrl.disk.reading import typed
from goatrl.evaluation.environment_group import EnvironmentFamily, group_of
from goatrl.evaluation.worlds import Environment
from goatrl.learn.agent import Agent, actor_critic
from goatrl.learn.parameters import described
from goatrl.learn.values import QEnsemble
from goatrl.robots import Finetuning
from goatrl.runs.folder import Agents, check_native, check_seeds
from goatrl.runs.offline import Run, RunConfig, composition
from goatrl.runs.online import OnlinePlan, OnlineRun
from goatrl.tasks import TaskGroup
from goatrl.training.offline import Members, init
from goatrl.training.online import Schedule
from goatrl.types import ActionBounds, Algorithm, GoatError, Spec, TrainState, unknown

WAYS = ("ddpg_her", "own")
EPISODES = 4_000  # of each seed: 196,000 environment steps
CAPACITY = 20_000  # episodes in the buffer: the released code's 10^6 steps
EVALUATED_BY = (1, 1)  # members draw by (seed, round)


def plan(
    run: Run,
    by: str = "ddpg_her",
    where: str | Environment | None = None,
    episodes: int = EPISODES,
) -> OnlinePlan:
    """Fine-tune all agents of a `goat train` run, on the tasks of its group unless another one is
    named, or an environment.
    """
    if by not in WAYS:
        raise unknown("fine-tuning algorithm", by, WAYS)
    config = run.config()
    if isinstance(where, Environment):
        found = group_of(where, config.spec, config.action_bounds)
    else:
        name = where or config.group
        if name is None:
            raise GoatError(
                f"{run.folder} was trained without a task group; specify --group or --environment"
            )
        found = _robots(name)
        found.check_fits(config.spec, str(run.folder))
        check_native(config.action_bounds, found, str(run.folder))
    members, state = run.restore()
    if by == "ddpg_her":
        members, state = as_ddpg(run, members, state, found)
    with run.checkpoint_path.open("rb") as file:
        checksum = hashlib.file_digest(file, "sha256").hexdigest()
    return _plan(
        found,
        members,
        episodes,
        state,
        _origin(config, by, checkpoint=checksum),
    )


def describe(config: RunConfig, by: str, episodes: int = EPISODES) -> dict[str, object]:
    """What the plan for agents of this configuration will be about, before they are trained: all
    but their checkpoint.
    """
    assert config.group is not None
    group, members = _robots(config.group), config.members()
    if by == "ddpg_her":
        members = _converted(
            members,
            group,
            config.algorithm,
            config.algorithm,
            "fine-tune it with its own algorithm",
        )
    return _about(
        group,
        members,
        episodes,
        _schedule(group, members, episodes, adapt=False),
        _origin(config, by),
    )


def random_plan(group: str, seeds: Sequence[int], episodes: int = EPISODES) -> OnlinePlan:
    """The baseline: DDPG+HER from the first episode on."""
    found = _robots(group)
    check_seeds(seeds)
    algorithm = _ddpg(found, critics=1)
    return _plan(
        found,
        [(algorithm, seed) for seed in seeds],
        episodes,
        None,
        {"from": "random", "by": "ddpg_her", "revisions": _revisions("ddpg_her")},
    )


class _Origin(TypedDict):
    """Whose agents are fine-tuned."""

    algorithm: str
    label: str
    source: str
    overrides: dict[str, Any]
    group: str | None


class _Rounds(TypedDict):
    episodes: Annotated[int, msgspec.Meta(ge=1)]


class _About(TypedDict):
    """What a folder must say of itself so that its agents can be loaded."""

    by: str
    group: str | None
    seeds: list[int]
    episodes: int
    schedule: _Rounds
    hyperparameters: dict[str, Any]
    action_bounds: NotRequired[ActionBounds]


def agents(run: OnlineRun) -> Agents:
    """All agents of a run of `goat finetune` as they were last saved."""
    about = run.about()
    typed(_About, about)
    check_seeds(about["seeds"])
    origin, name, spec = about["from"], about["group"], _spec(about)
    if origin != "random":
        typed(_Origin, origin)
    if about["by"] == "own":
        teacher = algorithms.recorded(origin["algorithm"], origin["source"], run.folder)
        composed = composition(teacher, origin["group"], origin["overrides"])
    else:
        teacher = algorithms.get("ddpg_her")
        composed = composition(teacher, name, about["hyperparameters"])
    members = [(composed, seed) for seed in about["seeds"]]
    begun_as = "random networks" if origin == "random" else origin["label"]
    label = f"{begun_as} fine-tuned by {teacher.label}"
    unfinished = run.unfinished(about["episodes"] // about["schedule"]["episodes"], "goat finetune")
    return Agents(
        run.folder,
        label,
        members,
        run.last_saved(members, spec),
        spec,
        name,
        unfinished,
        ActionBounds.of(**about["action_bounds"]) if "action_bounds" in about else None,
    )


def _spec(about: dict[str, Any]) -> Spec:
    """The dimensions of fine-tuned agents. An environment is not opened for them."""
    return typed(Spec, about["spec"]) if about["group"] is None else tasks.get(about["group"]).spec


def as_ddpg(
    run: Run, members: Members, state: TrainState, group: TaskGroup
) -> tuple[Members, TrainState]:
    """The same agents, converted for fine-tuning with DDPG+HER.

    Policies, critics, the targets of both and input statistics are the agents' own; the optimiser
    is a new one. The policy is the one that acted, also where that was an average. Imitators have
    no critics, so theirs are new as well.
    """
    converted = _converted(members, group, str(run.folder), run.config().algorithm, "use --by own")
    fresh = init(converted, group.spec)
    params = dict(state.params)
    target = {name: state.target[name] for name in params}
    agent = members[0][0]
    assert isinstance(agent, Agent), "`_converted` refuses others"
    params["policy"] = agent.acting(state)
    if not params["value"]:
        params["value"], target["value"] = fresh.params["value"], fresh.target["value"]
    return converted, dataclasses.replace(
        fresh, params=params, target=target, normalizer=state.normalizer
    )


def _converted(
    members: Members, group: TaskGroup, what: str, algorithm: str, instead: str
) -> Members:
    return [(_as_ddpg(agent, group, what, algorithm, instead), seed) for agent, seed in members]


def _as_ddpg(agent: Algorithm, group: TaskGroup, what: str, algorithm: str, instead: str) -> Agent:
    if not isinstance(agent, Agent):
        raise GoatError(
            f"{what} cannot be fine-tuned with ddpg_her, which needs agents composed of parts of "
            f"goatrl.learn; {instead}"
        )
    if agent.value is not None and not isinstance(agent.value, QEnsemble):
        known = getattr(agent.value, "learns", "V(s, g)")
        raise GoatError(
            f"{what} cannot be fine-tuned with ddpg_her, which improves a policy through "
            f"Q(s, a, g), while {algorithm} learns {known}; {instead}"
        )
    critics = 1 if agent.value is None else agent.value.size
    # what its critics have learned to predict
    return dataclasses.replace(
        _ddpg(group, critics),
        discount=agent.discount,
        architecture=agent.architecture,
        symmetry=agent.symmetry,
    )


def _ddpg(group: TaskGroup, critics: int) -> Agent:
    """`ddpg_her`, or `ddpg_her_ens` with as many critics. Targets move after the batches of every
    episode.
    """
    settings = dataclasses.replace(group.settings, target_period=_recipe(group).batches)
    return actor_critic(settings, QEnsemble(critics))


def _plan(
    group: TaskGroup,
    members: Members,
    episodes: int,
    trained: TrainState | None,
    origin: dict[str, object],
) -> OnlinePlan:
    recipe, schedule = (
        _recipe(group),
        _schedule(group, members, episodes, adapt=trained is None),
    )
    return OnlinePlan(
        members,
        group,
        group.tasks,
        schedule,
        rounds=episodes // recipe.round,
        evaluate_every=recipe.evaluate_every,
        about=_about(group, members, episodes, schedule, origin),
        trained=trained,
        evaluated_episodes=recipe.evaluated_episodes,
        evaluated_by=EVALUATED_BY,
    )


def _schedule(group: TaskGroup, members: Members, episodes: int, adapt: bool) -> Schedule:
    recipe = _recipe(group)
    if episodes < 1 or episodes % recipe.round:
        near = max(round(episodes / recipe.round), 1) * recipe.round
        raise GoatError(
            f"the number of episodes must be a multiple of {recipe.round}, not {episodes}; try "
            f"{near}"
        )
    schedule = Schedule(
        episodes=recipe.round,
        updates=recipe.round * recipe.batches,
        batch_size=recipe.batch_size,
        capacity=min(CAPACITY, episodes),
        noise=0.2,
        random=0.3,
        adapt_normalizer=adapt,
    )
    schedule.check(members[0][0].target_period)
    return schedule


def _about(
    group: TaskGroup, members: Members, episodes: int, schedule: Schedule, origin: dict[str, object]
) -> dict[str, object]:
    recipe = _recipe(group)
    return origin | {
        **described(members[0][0]),
        **_place(group),
        "evaluation": group.evaluation_checksum(),
        "seeds": [seed for _, seed in members],
        "episodes": episodes,
        "schedule": dataclasses.asdict(schedule),
        "evaluate_every": recipe.evaluate_every,
        "evaluated_episodes": recipe.evaluated_episodes,
    }


def _place(group: TaskGroup) -> dict[str, object]:
    family = group.family
    if not isinstance(family, EnvironmentFamily):
        return {"group": group.name}
    where = {"id": family.environment.id, "arguments": dict(family.environment.arguments)}
    bounds = family.action_bounds
    scale = {} if bounds is None else {"action_bounds": dataclasses.asdict(bounds)}
    return {"group": None, "environment": where, "spec": dataclasses.asdict(group.spec), **scale}


def _origin(config: RunConfig, by: str, **more: str) -> dict[str, object]:
    """Which agents these are, whatever their folder, and how they are fine-tuned."""
    origin = {
        "algorithm": config.algorithm,
        "label": algorithms.get(config.algorithm).label,
        "source": config.source,
        "overrides": dict(config.overrides),
        "group": config.group,
        "data": config.checksum,
        "updates": config.updates,
        **more,
    }
    return {"from": origin, "by": by, "revisions": {**config.revisions, **_revisions(by)}}


def _revisions(by: str) -> dict[str, int]:
    """The revision of the algorithm that fine-tunes agents, if it is not their own."""
    return {} if by == "own" else {by: algorithms.get(by).revision}


def _robots(name: str) -> TaskGroup:
    group = tasks.get(name)
    if group.family.finetuning is None:
        known = ", ".join(
            each.name for each in tasks.groups().values() if each.family.finetuning is not None
        )
        raise GoatError(f"{name} has no robot to fine-tune on; groups that have one: {known}")
    return group


def _recipe(group: TaskGroup) -> Finetuning:
    assert group.family.finetuning is not None, "`_robots` refuses such groups"
    return group.family.finetuning
