"""The benchmarks run. On tiny problems what they measure means nothing; that they still measure
does.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cluster
import durability
import peers
import simulator_speed
import update_speed
from goatrl import tasks
from goatrl.robots.workers import Workers
from goatrl.types import Episodes
from helpers import made_by_hand

PYPROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())


def test_the_speed_of_updates_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(update_speed, "EPISODES", 20)
    monkeypatch.setattr(update_speed, "BATCH", 16)
    update_speed.main(["--updates", "20", "--repeats", "1", "--members", "1"])
    report = json.loads(capsys.readouterr().out)
    assert report["1 members"]["update ms"] > 0
    assert 0 < report["1 members"]["percentile share"] < 1
    assert report["update / matrix products"] > 0


def test_the_cost_of_checksums_and_claims_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(update_speed, "EPISODES", 20)
    durability.main(["--updates", "20"])
    report = json.loads(capsys.readouterr().out)
    assert report["checkpoints"] == 1
    shares = [report[f"{name}, share"] for name in durability.PARTS]
    assert all(0 < share < 1 for share in shares)
    assert report["checksums and claims, share"] == pytest.approx(sum(shares[:2]))


def test_judging_is_measured_beside_bare_steps_of_the_same_episodes() -> None:
    group = tasks.get("reach-left-right")
    few = tuple(replace(task, episodes=30) for task in group.tasks)
    report = simulator_speed.judging([replace(group, tasks=few, coverage=None)], 2, repeats=1)
    assert report["steps"] == 2 * 2 * 30 * group.spec.horizon
    assert report["bare mj_step, steps/s"] > 0
    ratio = report["judging, steps/s"] / report["bare mj_step, steps/s"]
    assert report["judging / bare mj_step"] == pytest.approx(ratio, rel=0.01)


def test_a_ratio_says_how_many_times_as_fast_ours_is() -> None:
    pairs = [
        peers.Pair("updates", "ours", "theirs", peers.MS),
        peers.Pair("steps", "our steps", "their steps", peers.RATE),
    ]
    measured = {
        "ours": [2.0, 1.0, 70.0],  # medians: one disturbed round does not count
        "theirs": [5.0, 6.0, 7.0],
        "our steps": [3000.0, 3000.0, 3100.0],
        "their steps": [1000.0, 1200.0, 1000.0],
    }
    assert peers.compare(pairs, measured) == [
        peers.Row("updates", 2.0, 6.0, peers.MS, 2.5, (0.1, 6.0)),
        peers.Row("steps", 3000.0, 1000.0, peers.RATE, 3.0, (2.5, 3.1)),
    ]


def test_a_busy_machine_is_noticed() -> None:
    assert peers.disturbed({"steady": [1.0, 1.2, 1.3], "not": [10.0, 16.0, 10.0]}) == ["not"]


def test_contestants_take_turns() -> None:
    order: list[str] = []
    contestants = {name: lambda name=name: float(len(order.append(name) or order)) for name in "ab"}
    assert peers.take_turns(contestants, 2) == {"a": [1.0, 3.0], "b": [2.0, 4.0]}


def test_a_missing_peer_is_one_line_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peers, "PEERS", {"no_such_module": "no-such-package"})
    with pytest.raises(SystemExit) as error:
        peers.main([])
    message = "no-such-package is not installed; run: pip install 'goatrl[peers]'"
    assert error.value.code == message


def test_versions_of_all_peers_are_pinned() -> None:
    pinned = PYPROJECT["project"]["optional-dependencies"]["peers"]
    assert {each.split("==")[0] for each in pinned} == set(peers.PEERS.values())


def test_a_replay_buffer_gets_the_transitions_of_all_episodes(odd_episodes: Episodes) -> None:
    found = list(peers.transitions(odd_episodes))
    assert len(found) == odd_episodes.count * odd_episodes.horizon
    assert sum(last for *_, last in found) == odd_episodes.count
    seen, following, action, _ = found[odd_episodes.horizon + 2]  # the third of the second episode
    np.testing.assert_array_equal(seen["observation"], odd_episodes.observations[1, 2])
    np.testing.assert_array_equal(following["achieved_goal"], odd_episodes.achieved[1, 3])
    np.testing.assert_array_equal(following["desired_goal"], odd_episodes.goals[1])
    np.testing.assert_array_equal(action, odd_episodes.actions[1, 2])


@pytest.mark.filterwarnings("ignore")  # Gymnasium's advice about environments
def test_evaluation_is_measured_beside_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "EPISODES", 2)
    contestants = peers.evaluations()
    assert {pair.ours for pair in peers.PAIRS} & set(contestants) == {"evaluation"}
    assert {pair.theirs for pair in peers.PAIRS} & set(contestants) == {"loop over episodes"}
    assert all(run() > 0 for run in contestants.values())


def test_programs_go_to_free_gpus_and_pieces_to_free_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two programs of 10 s, compiled in 2 s, then 40 episodes each in pieces of 20, on nodes of two
    cores: a piece takes 1 + 20 · 0.1 s.
    """
    monkeypatch.setattr(cluster, "GPU_COMPILATION", 2.0)
    monkeypatch.setattr(cluster, "NODE_CORES", 2)
    monkeypatch.setattr(cluster, "NETWORK", 1e30)
    rows = [{"seed": 0}] * 40
    cell = made_by_hand("push-left-right", rows, (0,))
    pieces = {tasks.get("push-left-right").family.name: cluster.PieceTime(1.0, 0.1)}
    work = cluster.Work([(10.0, [cell])] * 2, pieces, call=0.0, record=0.5)
    one, two = (cluster.schedule(work, count) for count in (1, 2))
    assert one.seconds == pytest.approx(24 + 3 + 0.5), "one program after the other"
    assert two.seconds == pytest.approx(12 + 3 + 0.5)
    assert (two.bounds["GPUs"], two.bounds["cores"]) == pytest.approx((12, 4 * 3 / 4))
    assert (two.bounds["longest program"], two.bounds["records"]) == pytest.approx((12, 1))
    assert one.efficiency == pytest.approx(24 / 27.5)
    slow = cluster.schedule(replace(work, call=100.0), 2)
    assert slow.saturated == "driver"
    assert slow.seconds == pytest.approx(12 + 4 * 100 + 3 + 0.5)


def test_a_call_costs_something_and_a_piece_has_its_time() -> None:
    pool = Workers(1)
    try:
        assert 0 < cluster.calls(pool) < 1
    finally:
        pool.close()
    found = cluster.piece_time("reach-left-right", episodes=1)
    assert found.episode > 0
    assert found.compiling > 0
