"""The batched simulator: equal to the library's environment, to the authors' recordings and to its
own past.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import mujoco
import numpy as np
import pytest

from contacts import GROUPS, ROBOTS, STEPS, contact_rich, simulator_of, starts_of
from goatrl import data, tasks
from goatrl.robots.fetch import FetchFamily
from goatrl.robots.mujoco import MujocoFamily
from goatrl.robots.physics.fetch import FINGER_JOINTS, NEVER_TOUCH
from goatrl.robots.push import PUSH
from goatrl.robots.slide import SLIDE
from goatrl.types import GoatError

GOLDEN = Path(__file__).parents[1] / "golden"
COUNT = 4


@pytest.fixture(scope="module", params=ROBOTS)
def recorded(request: pytest.FixtureRequest):
    """robot, starts, actions, observations, achieved goals of a batch on one thread."""
    robot = request.param
    starts = starts_of(robot, COUNT)
    return robot, starts, *contact_rich(simulator_of(robot, COUNT, threads=1), starts)


def test_the_recorded_motion_is_rich_in_contacts(recorded) -> None:
    robot, _, _, observations, achieved = recorded
    assert observations.shape == (STEPS + 1, COUNT, GROUPS[robot].spec.observation_dim)
    assert achieved.shape == (STEPS + 1, COUNT, GROUPS[robot].spec.goal_dim)
    assert (np.linalg.norm(achieved[-1] - achieved[0], axis=-1) > 0.02).all()


def test_a_batch_equals_the_librarys_environment(recorded) -> None:
    robot, starts, actions, observations, achieved = recorded
    family = GROUPS[robot].family
    for number in range(COUNT):
        environment = family.make_environment(prune=False)
        environment.reset(seed=0)
        family.robot.reset(environment.data, starts[number])
        seen = [environment._get_obs()]
        seen += [environment.step(action)[0] for action in actions[:, number]]
        np.testing.assert_allclose(
            [each["observation"] for each in seen], observations[:, number], rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(
            [each["achieved_goal"] for each in seen], achieved[:, number], rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("threads", [2, 16])
def test_threads_change_nothing(recorded, threads: int) -> None:
    robot, starts, actions, observations, _ = recorded
    simulator = simulator_of(robot, 4 * COUNT, threads)
    _, seen, _ = contact_rich(
        simulator, np.tile(starts, (4, 1)), actions=np.tile(actions, (1, 4, 1))
    )
    np.testing.assert_array_equal(seen, np.tile(observations, (1, 4, 1)))


def test_a_partial_reset_touches_no_other_robot(recorded) -> None:
    robot, starts, actions, observations, _ = recorded
    simulator = simulator_of(robot, COUNT, threads=2)
    simulator.reset(starts)
    for action in actions[:10]:
        simulator.step(action)
    chosen = [2, 0]
    seen, _ = simulator.reset(starts[chosen], which=chosen)
    np.testing.assert_array_equal(
        seen, observations[np.where(np.isin(range(COUNT), chosen), 0, 10), range(COUNT)]
    )
    for step in range(10, 20):
        again = np.where(np.isin(range(COUNT), chosen), step - 10, step)
        seen, _ = simulator.step(actions[again, range(COUNT)])
        np.testing.assert_array_equal(seen, observations[again + 1, range(COUNT)])


@pytest.mark.parametrize("robot", ROBOTS)
def test_physics_has_not_changed(robot: str) -> None:
    """Golden trajectories. Another processor may round differently; another physics is off by
    millimetres.
    """
    with np.load(GOLDEN / f"{robot}.npz") as golden:
        starts, actions, observations = golden["starts"], golden["actions"], golden["observations"]
    _, seen, _ = contact_rich(simulator_of(robot, len(starts)), starts, actions=actions)
    np.testing.assert_allclose(seen[::7], observations, rtol=0, atol=1e-6)


def test_replay_of_the_authors_recording(reference_data: Path) -> None:
    """Their actions, open loop, lead to their positions: within 0.001 mm at the last step, on
    average over 200 episodes.
    """
    recording = data.load(reference_data / "FetchReach" / "reach_right_expert_200.pkl")
    simulator = simulator_of("reach", recording.count)
    _, achieved = simulator.reset(np.zeros((recording.count, 0)))
    np.testing.assert_allclose(achieved, recording.achieved[:, 0], atol=1e-6)
    for step in range(recording.horizon):
        _, achieved = simulator.step(np.asarray(recording.actions)[:, step])
    error = np.linalg.norm(achieved - recording.achieved[:, -1], axis=-1)
    assert error.mean() < 1e-6
    assert error.max() < 1e-4


@pytest.mark.parametrize(
    "group",
    [group for group in tasks.groups().values() if isinstance(group.family, MujocoFamily)],
    ids=lambda g: g.name,
)
def test_every_task_resets_and_steps(group: tasks.TaskGroup) -> None:
    drawn = [task.draw(0, 3) for task in group.tasks]
    starts, goals = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    simulator = group.family.simulator(len(starts))
    seen, achieved = simulator.reset(starts)
    assert seen.shape == (len(starts), group.spec.observation_dim)
    assert achieved.shape == goals.shape
    if simulator.robot.start_dim:
        np.testing.assert_allclose(achieved[:, :2], starts, atol=1e-9)
    moved, _ = simulator.step(np.full((len(starts), group.spec.action_dim), 0.5))
    assert np.isfinite(moved).all()
    assert (np.abs(moved - seen).max(axis=1) > 1e-4).all()


def test_states_are_used_again_and_remember_nothing(recorded) -> None:
    robot, starts, actions, observations, _ = recorded
    used = simulator_of(robot, COUNT)
    contact_rich(used, starts[::-1], seed=5)
    states = set(map(id, used.states))
    used.close()
    again = simulator_of(robot, COUNT)
    assert set(map(id, again.states)) == states
    _, seen, _ = contact_rich(again, starts, actions=actions)
    np.testing.assert_array_equal(seen, observations)


def test_observations_are_the_callers_own() -> None:
    simulator = simulator_of("reach", 1)
    seen, achieved = simulator.reset(np.zeros((1, 0)))
    before = seen.copy(), achieved.copy()
    simulator.step(np.ones((1, 4)))
    np.testing.assert_array_equal(seen, before[0])
    np.testing.assert_array_equal(achieved, before[1])


def test_actions_are_clipped() -> None:
    wild, tame = simulator_of("reach", 1), simulator_of("reach", 1)
    for simulator in (wild, tame):
        simulator.reset(np.zeros((1, 0)))
    np.testing.assert_array_equal(wild.step(np.full((1, 4), 7.0))[0], tame.step(np.ones((1, 4)))[0])


def test_starts_of_another_shape_are_refused() -> None:
    with pytest.raises(GoatError, match=r"2 starts of push need shape \(2, 2\), not \(2, 0\)"):
        simulator_of("push", 2).reset(np.zeros((2, 0)))
    with pytest.raises(GoatError, match=r"1 starts of reach need shape \(1, 0\), not \(1, 2\)"):
        simulator_of("reach", 1).reset(np.zeros((1, 2)))


def test_an_error_in_a_thread_is_not_lost() -> None:
    simulator = simulator_of("reach", 4, threads=2)
    simulator.reset(np.zeros((4, 0)))
    simulator.states[3] = None
    with pytest.raises(TypeError):
        simulator.step(np.zeros((4, 4)))


def test_another_mujoco_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mujoco, "__version__", "3.12.0")
    with pytest.raises(
        GoatError, match=r"need mujoco 3\.3\.7, not 3\.12\.0; run `pip install mujoco==3\.3\.7`"
    ):
        PUSH.make_environment()


def test_the_three_changes_are_made() -> None:
    model = SLIDE.robot.model
    gripper = model.body("robot0:gripper_link").id
    assert model.body_invweight0[gripper, 0] == model.body_invweight0[gripper, 1] > 0
    limited = {
        model.joint(number).name for number in range(model.njnt) if model.jnt_limited[number]
    }
    assert limited == set(FINGER_JOINTS)
    assert model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_NATIVECCD


def test_parts_that_are_not_compared_never_touch() -> None:
    """Head and shoulder turned all the way round, the head nodding: centimetres remain. Base, torso
    and table stand still.
    """
    robot = SLIDE.robot
    model, state = robot.model, mujoco.MjData(robot.model)
    geoms = {model.body(int(model.geom_bodyid[geom])).name: geom for geom in range(model.ngeom)}
    pairs = [(geoms[one], geoms[other]) for one, other in NEVER_TOUCH]
    circle = np.linspace(-np.pi, np.pi, 16, endpoint=False)
    for shoulder, head, nod in itertools.product(circle, circle, (-0.5, 0.0, 0.5)):
        state.qpos[:] = robot.environment.initial_qpos
        for joint, angle in (("shoulder_pan", shoulder), ("head_pan", head), ("head_tilt", nod)):
            state.joint(f"robot0:{joint}_joint").qpos[:] = angle
        mujoco.mj_kinematics(model, state)
        for one, other in pairs:
            assert mujoco.mj_geomDistance(model, state, one, other, 0.1, None) > 0.05


def test_base_and_torso_stand_still(recorded) -> None:
    robot, starts, actions, *_ = recorded
    if not isinstance(GROUPS[robot].family, FetchFamily):
        return
    simulator = simulator_of(robot, COUNT)
    contact_rich(simulator, starts, actions=actions)
    for joint in ("slide0", "slide1", "slide2", "torso_lift_joint"):
        moved = [state.joint(f"robot0:{joint}").qpos[0] for state in simulator.states]
        np.testing.assert_allclose(
            moved, simulator.robot.environment.data.joint(f"robot0:{joint}").qpos[0], atol=2e-3
        )


def test_far_objects_lie_on_pushs_table() -> None:
    """Twenty steps without touching them: they stay where they were put."""
    starts, _ = tasks.get("push-near-far").task("Far2Far").draw(5, 16)
    simulator = simulator_of("push", len(starts))
    _, before = simulator.reset(starts)
    up = np.tile([0.0, 0.0, 1.0, 0.0], (len(starts), 1))
    for _ in range(20):
        _, after = simulator.step(up)
    np.testing.assert_allclose(after, before, atol=2e-3)
