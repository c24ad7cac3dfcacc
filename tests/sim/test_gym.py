"""The tasks as Gymnasium environments: the interface others expect, on the physics of the batched
simulator.
"""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import make
from gymnasium.utils.env_checker import check_env

from goatrl import tasks
from goatrl.sim.registration import identifier
from goatrl.types import GoatError

GROUPS = tasks.robots()
IDS = [identifier(group, task) for group in GROUPS for task in group.tasks]
ONE_OF_EACH = [
    "goatrl/ReachFar-v0",
    "goatrl/PushNear2Far-v0",
    "goatrl/PickHigh-v0",
    "goatrl/SlideFar-v0",
    "goatrl/HandReachFar-v0",
]


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(one[name], other[name]) for name in one
    )


def test_every_robot_task_has_its_own_name() -> None:
    assert len(IDS) == len(set(IDS)) == 26
    assert {name for name in gymnasium.registry if name.startswith("goatrl/")} == set(IDS)
    assert {
        "goatrl/ReachRight-v0",
        "goatrl/PushRight2Left-v0",
        "goatrl/PickLow-v0",
        "goatrl/HandReachNear-v0",
    } <= set(IDS)


@pytest.mark.parametrize("name", IDS)
# A position has no bounds that would say anything; the checker would rather have some.
@pytest.mark.filterwarnings(
    "ignore:.*A Box observation space (minimum|maximum) value is -?infinity:UserWarning"
)
def test_gymnasium_finds_no_fault(name: str) -> None:
    check_env(make(name).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("name", IDS)
def test_an_episode(name: str) -> None:
    env = make(name)
    task, spec = env.unwrapped.task, env.unwrapped.group.spec
    observation, _ = env.reset(seed=0)
    assert task.goal.contains(observation["desired_goal"])
    if task.start.sample(np.random.default_rng(0), 1).size:
        assert task.start.contains(observation["achieved_goal"][:2])
    env.action_space.seed(0)
    for step in range(1, spec.horizon + 1):
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert env.observation_space.contains(observation)
        assert (terminated, truncated) == (False, step == spec.horizon)
        near = (
            np.linalg.norm(observation["achieved_goal"] - observation["desired_goal"])
            <= spec.goal_threshold
        )
        assert (reward, info["is_success"]) == (float(near), near)
    env.close()


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_seed_decides_start_and_goal(name: str) -> None:
    env = make(name)
    first, second = env.reset(seed=3)[0], env.reset()[0]
    assert same(first, make(name).reset(seed=3)[0])
    assert same(first, env.reset(seed=3)[0])
    assert same(second, env.reset()[0])
    assert not np.array_equal(first["desired_goal"], second["desired_goal"])


def test_start_and_goal_can_be_given() -> None:
    env = make("goatrl/PushRight2Left-v0")
    drawn = env.reset(seed=0)[0]
    start, goal = [1.4, 0.8], [1.3, 0.7, 0.42]
    placed = env.reset(seed=0, options={"start": start})[0]
    np.testing.assert_allclose(placed["achieved_goal"][:2], start, atol=1e-9)
    np.testing.assert_array_equal(placed["desired_goal"], drawn["desired_goal"])
    aimed = env.reset(seed=0, options={"goal": goal})[0]
    np.testing.assert_array_equal(aimed["desired_goal"], goal)
    np.testing.assert_array_equal(aimed["achieved_goal"], drawn["achieved_goal"])
    both = env.reset(options={"start": start, "goal": goal})[0]
    np.testing.assert_array_equal(both["achieved_goal"], placed["achieved_goal"])
    np.testing.assert_array_equal(both["desired_goal"], goal)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Push", {"gaol": [1.3, 0.7, 0.42]}, "unknown option 'gaol'; did you mean goal?"),
        ("Push", {"start": [1.3, 0.7, 0.42]}, r"a start must have 2 numbers, not shape \(3,\)"),
        ("Push", {"goal": 1.3}, r"a goal must have 3 numbers, not shape \(\)"),
        ("Push", {"goal": "there"}, "a goal must have 3 numbers, not 'there'"),
        ("Push", {"goal": [1.3, 0.7, np.nan]}, "a goal must have 3 finite numbers"),
        ("Reach", {"start": [1.3, 0.7]}, "Reach Left-Right has no object to place"),
        ("HandReach", {"goal": [1.3, 0.7, 0.42]}, "a goal must have 15 numbers"),
    ],
)
def test_wrong_options_are_refused_in_one_line(name: str, options: dict, message: str) -> None:
    env = make({"Push": IDS[4], "Reach": IDS[0], "HandReach": IDS[-1]}[name])
    with pytest.raises(GoatError, match=message) as refused:
        env.reset(options=options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("action", [np.zeros(1), np.zeros((1, 4)), np.full(4, np.nan)])
def test_wrong_actions_are_refused(action: np.ndarray) -> None:
    env = make("goatrl/PickHigh-v0").unwrapped
    env.reset(seed=0)
    with pytest.raises(GoatError, match="an action must have 4"):
        env.step(action)


def test_reward_is_one_within_the_threshold() -> None:
    env = make("goatrl/ReachNear-v0").unwrapped
    here = env.reset(seed=0)[0]["achieved_goal"]
    env.reset(options={"goal": here})
    assert env.step(np.zeros(4))[1] == 1.0
    offsets = np.array([0.0, 0.05, 0.0500001])[:, None] * np.array([1.0, 0.0, 0.0])
    np.testing.assert_array_equal(env.compute_reward(offsets, np.zeros(3), {}), [1.0, 1.0, 0.0])
    assert env.compute_reward(np.zeros((2, 4, 3)), np.zeros((2, 4, 3)), {}).shape == (2, 4)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_alone_as_in_a_batch(name: str) -> None:
    env = make(name).unwrapped
    starts, goals = env.task.draw(0, 3)
    batch = env.group.family.simulator(3)
    observations, _ = batch.reset(starts)
    options = {"goal": goals[1]} | ({"start": starts[1]} if starts.size else {})
    alone = env.reset(options=options)[0]
    np.testing.assert_allclose(alone["observation"], observations[1], rtol=0, atol=1e-12)
    generator = np.random.default_rng(0)
    for _ in range(15):
        actions = generator.uniform(-1, 1, (3, env.group.spec.action_dim))
        observations, achieved = batch.step(actions)
        alone = env.step(actions[1])[0]
        np.testing.assert_allclose(alone["observation"], observations[1], rtol=0, atol=1e-12)
        np.testing.assert_allclose(alone["achieved_goal"], achieved[1], rtol=0, atol=1e-12)
    batch.close()
