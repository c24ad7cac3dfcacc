"""The paper's conclusions: each can hold, and each can fail."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import pyarrow as pa
import pytest

from conftest import made_by_hand
from goatrl import tasks
from goatrl.benchmark import paper, statements, suites
from goatrl.benchmark.records import Cell
from goatrl.benchmark.statements import EXPERT, HARD, NON_EXPERT, NON_EXPERT_50, Verdict
from goatrl.evaluate import SCHEMA

BC_CLEAN, BC_NOISE, DDPG_WORST, CQL_INSIDE, WGCSL_BETTER = range(5)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Whether an agent reaches the upper and the lower half of R10, and how many of the 20 goals of R20."""

    upper: bool
    lower: bool
    far: int


def make_cell(group: str, label: str, outcome: Outcome) -> Cell:
    rows = []
    for task in tasks.get(group).tasks:
        for seed in (0, 1):
            for episode, goal in enumerate(task.evaluation()[1]):
                near = outcome.upper if episode < 10 else outcome.lower
                success = near if task.name == "R10" else episode < outcome.far
                place = {"start": [0.0, 0.0], "goal": goal.tolist(), "path": None, "final_distance": 0.0, "return": 0}
                rows.append(place | {"task": task.name, "split": "iid", "seed": seed, "episode": episode, "success": success})
    return made_by_hand(group, rows, (0, 1), label)


# Numbers near the paper's, for which all five conclusions hold.
FAR = {
    "GOAT": (10, 14, 18),
    "WGCSL": (8, 10, 16),
    "GCSL": (1, 2, 6),
    "Goal BC": (9, 1, 4),
    "HER": (0, 0, 10),
    "CQL+HER": (1, 3, 15),
}
OUTCOMES = {
    (group, label): Outcome(label != "HER", False, far[place])
    for label, far in FAR.items()
    for place, group in enumerate((EXPERT, NON_EXPERT, NON_EXPERT_50))
}


@pytest.fixture(scope="module")
def holding() -> dict[tuple[str, str], Cell]:
    return {key: make_cell(*key, outcome) for key, outcome in OUTCOMES.items()}


def changed(holding: dict, *changes: tuple[str, str, dict]) -> dict:
    cells = dict(holding)
    for group, label, change in changes:
        cells[group, label] = make_cell(group, label, dataclasses.replace(OUTCOMES[group, label], **change))
    return cells


def check(cells: dict) -> list[Verdict]:
    return statements.check(suites.get("pointreach"), list(cells.values()))


def held(cells: dict) -> list[bool | None]:
    return [verdict.held for verdict in check(cells)]


def test_all_five_can_hold(holding: dict) -> None:
    assert held(holding) == [True] * 5


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        (BC_CLEAN, [(EXPERT, "HER", {"far": 10})]),
        (BC_CLEAN, [(EXPERT, "CQL+HER", {"far": 12}), (NON_EXPERT_50, "CQL+HER", {"far": 16})]),
        (BC_NOISE, [(NON_EXPERT, "Goal BC", {"far": 5})]),  # 5 of 9 is more than half
        (DDPG_WORST, [(group, "HER", {"upper": True, "lower": True}) for group in (EXPERT, NON_EXPERT)]),
        (
            DDPG_WORST,
            [(group, "GOAT", {"upper": False, "far": 0}) for group in (EXPERT, NON_EXPERT)]
            + [(NON_EXPERT, "HER", {"upper": True})],
        ),
        (CQL_INSIDE, [(EXPERT, "CQL+HER", {"lower": True})]),
        (CQL_INSIDE, [(EXPERT, "CQL+HER", {"upper": False, "lower": True})]),
        (CQL_INSIDE, [(EXPERT, "CQL+HER", {"upper": False})]),
        (CQL_INSIDE, [(NON_EXPERT_50, "CQL+HER", {"far": 2})]),
        (WGCSL_BETTER, [(EXPERT, "WGCSL", {"far": 0})]),
        (WGCSL_BETTER, [(NON_EXPERT, "GCSL", {"far": 11})]),
        (WGCSL_BETTER, [(NON_EXPERT_50, "WGCSL", {"far": 6})]),  # the same is not better
    ],
)
def test_each_can_fail_alone(holding: dict, claim: int, changes: list) -> None:
    assert held(changed(holding, *changes)) == [place != claim for place in range(5)]


def test_losing_exactly_half_is_not_more_than_half(holding: dict) -> None:
    half = changed(holding, (EXPERT, "Goal BC", {"far": 10}), (NON_EXPERT, "Goal BC", {"far": 5}))
    more = changed(holding, (EXPERT, "Goal BC", {"far": 10}), (NON_EXPERT, "Goal BC", {"far": 4}))
    assert (held(half)[BC_NOISE], held(more)[BC_NOISE]) == (False, True)


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        (BC_CLEAN, [(EXPERT, "HER", {"far": 9})]),
        (DDPG_WORST, [(group, "WGCSL", {"upper": False, "far": 0}) for group in (EXPERT, NON_EXPERT)]),
        (CQL_INSIDE, [(NON_EXPERT_50, "CQL+HER", {"far": 3})]),
    ],
    ids=["as good as BC", "as bad as DDPG+HER", "the widest data no better"],
)
def test_a_tie_is_neither_better_nor_worse(holding: dict, claim: int, changes: list) -> None:
    assert held(changed(holding, *changes))[claim] is False


def test_goals_on_the_axis_belong_to_no_half(holding: dict) -> None:
    # Goals at 0 and 180 degrees are in the list of both halves; failing at them changes nothing.
    cell = holding[EXPERT, "CQL+HER"]
    goals = tasks.get(EXPERT).task("R10").evaluation()[1]
    on_axis = [abs(goals[episode][1]) < 1e-6 for episode in cell.column("episode")]
    success = [bool(s) and not axis for s, axis in zip(cell.column("success"), on_axis, strict=True)]
    table = cell.episodes.set_column(cell.episodes.schema.get_field_index("success"), "success", pa.array(success))
    cells = dict(holding) | {(EXPERT, "CQL+HER"): dataclasses.replace(cell, episodes=table)}
    assert "upper half 1.00, lower 0.00" in check(cells)[CQL_INSIDE].evidence


@pytest.mark.parametrize(
    ("label", "unknown"),
    [
        ("GOAT", {DDPG_WORST}),
        ("WGCSL", {DDPG_WORST, WGCSL_BETTER}),
        ("GCSL", {BC_CLEAN, DDPG_WORST, WGCSL_BETTER}),
        ("Goal BC", {BC_CLEAN, BC_NOISE, DDPG_WORST}),
        ("HER", {BC_CLEAN, DDPG_WORST}),
        ("CQL+HER", {BC_CLEAN, DDPG_WORST, CQL_INSIDE}),
    ],
)
@pytest.mark.parametrize("group", [EXPERT, NON_EXPERT_50])
def test_missing_cells_leave_it_open(holding: dict, group: str, label: str, unknown: set[int]) -> None:
    cells = {key: cell for key, cell in holding.items() if key != (group, label)}
    assert held(cells) == [None if claim in unknown else True for claim in range(5)]


def test_nothing_recorded_leaves_all_open() -> None:
    verdicts = check({})
    assert [verdict.held for verdict in verdicts] == [None] * 5
    assert all("not all" in verdict.evidence for verdict in verdicts)


def test_evidence_has_the_numbers(holding: dict) -> None:
    evidence = [verdict.evidence for verdict in check(holding)]
    assert evidence[BC_CLEAN] == "Goal BC 0.45, GCSL 0.05, HER 0.00, CQL+HER 0.05"
    assert evidence[BC_NOISE] == "0.45 from clean data, 0.05 from noisy data"
    assert "HER 0.00" in evidence[DDPG_WORST]
    assert "GOAT 0.55" in evidence[DDPG_WORST]  # (0.5 + 0.5 + 0.5 + 0.7) / 4
    assert evidence[CQL_INSIDE] == "upper half 1.00, lower 0.00; R20 0.05 / 0.15 / 0.75 on the three datasets"
    assert evidence[WGCSL_BETTER] == "0.40 against 0.05, 0.50 against 0.10, 0.80 against 0.30"


def test_claims_are_sentences_and_differ(holding: dict) -> None:
    claims = [verdict.claim for verdict in check(holding)]
    assert len(set(claims)) == len(claims) == 5
    assert all(len(claim) > 20 for claim in claims)


BENCHMARK = suites.get("paper")
OOD_HARDER, HALF_LOST, TAU_BEST, GOAT_BETTER, IMITATION_BETTER, PESSIMISM_FAILS = range(6)
Printed = Mapping[tuple[str, str], Mapping[str, float]]  # (group, column label) → task → success in percent


def printed_by_the_paper() -> dict[tuple[str, str], dict[str, float]]:
    published = paper.results("benchmark_success", "success")
    return {
        (group, column.label): {
            task.name: published[tasks.get(group).label, task.name, column.label][0] for task in tasks.get(group).tasks
        }
        for group in BENCHMARK.groups
        for column in BENCHMARK.columns
    }


PRINTED = printed_by_the_paper()


def with_means(key: tuple[str, str], means: Mapping[str, float]) -> Cell:
    """One seed, and as many episodes as a decimal of a percent needs."""
    columns: dict[str, list] = {"task": [], "success": []}
    for task, mean in means.items():
        columns["task"] += [task] * 1000
        columns["success"] += [episode < round(10 * mean) for episode in range(1000)]
    count = len(columns["task"])
    others = {"split": ["any"] * count, "seed": [0] * count, "episode": [0] * count, "return": [0] * count}
    nothing = dict.fromkeys(("final_distance", "start", "goal", "path"), [None] * count)
    cell = made_by_hand(key[0], [], (0,), key[1])
    return dataclasses.replace(cell, suite="paper", episodes=pa.Table.from_pydict(columns | others | nothing, schema=SCHEMA))


@pytest.fixture(scope="module")
def as_printed() -> dict[tuple[str, str], Cell]:
    return {key: with_means(key, means) for key, means in PRINTED.items()}


def judged(cells: Mapping[tuple[str, str], Cell]) -> list[bool | None]:
    return [verdict.held for verdict in statements.check(BENCHMARK, list(cells.values()))]


Place = Callable[[str, str], bool]  # (group, split) → whether the number there is replaced


def replaced(as_printed: dict, label: str, where: Place, value: float) -> dict:
    cells = dict(as_printed)
    for key, means in PRINTED.items():
        if key[1] == label:
            changed = {t: value if where(key[0], tasks.get(key[0]).task(t).split) else mean for t, mean in means.items()}
            cells[key] = with_means(key, changed)
    return cells


def test_every_conclusion_holds_for_the_papers_own_numbers(as_printed: dict) -> None:
    assert judged(as_printed) == [True] * 6


@pytest.mark.parametrize(
    ("claim", "label", "where", "value"),
    [
        (OOD_HARDER, "DDPG+HER", lambda group, split: split == "ood", 60.0),  # 44.6 on IID
        (HALF_LOST, "GoFAR", lambda group, split: split == "ood", 45.0),  # 83.3 on IID
        (HALF_LOST, "BC", lambda group, split: split == "ood", 30.0),  # 59.5
        (HALF_LOST, "GCSL", lambda group, split: split == "ood", 31.5),  # 62.3
        (TAU_BEST, "IQL+HER", lambda group, split: split == "ood", 80.0),
        (GOAT_BETTER, "GOAT", lambda group, split: split == "ood", 55.0),
        (IMITATION_BETTER, "CQL+HER", lambda group, split: split == "ood" and group not in HARD, 90.0),
        (IMITATION_BETTER, "MSG+HER", lambda group, split: split == "ood" and group not in HARD, 90.0),
        (PESSIMISM_FAILS, "MSG+HER", lambda group, split: group in HARD, 30.0),  # 55.7 for GOAT
        (PESSIMISM_FAILS, "CQL+HER", lambda group, split: group in HARD, 30.0),
    ],
)
def test_each_of_the_benchmarks_conclusions_can_fail_alone(
    as_printed: dict, claim: int, label: str, where: Place, value: float
) -> None:
    assert judged(replaced(as_printed, label, where, value)) == [place != claim for place in range(6)]


def test_a_tie_is_no_improvement(as_printed: dict) -> None:
    wgcsl = {key: cell for key, cell in as_printed.items() if key[1] == "WGCSL"}
    same = {(group, "GOAT"): dataclasses.replace(cell, label="GOAT") for (group, _), cell in wgcsl.items()}
    verdict = statements.check(BENCHMARK, list((as_printed | same).values()))[GOAT_BETTER]
    assert verdict.held is False
    assert verdict.evidence.startswith("GOAT 62.1, WGCSL 62.1; probability of improvement 0.50, ")


def test_the_benchmarks_evidence_has_the_papers_averages(as_printed: dict) -> None:
    # As the paper prints them in the last lines of its table, and in its order of columns.
    evidence = [verdict.evidence for verdict in statements.check(BENCHMARK, list(as_printed.values()))]
    assert evidence[HALF_LOST] == "GoFAR 83.3 to 40.5, GCSL 62.3 to 28.8, BC 59.5 to 21.7"
    assert evidence[TAU_BEST].startswith("GOAT(tau) 70.9, GOAT 67.9, WGCSL 62.1, GCSL 28.8, BC 21.7, GoFAR 40.5, DDPG+HER 23.7, ")
    assert "CQL+HER 68.7 to 46.5, MSG+HER 68.5 to 43.1" in evidence[OOD_HARDER]
    assert evidence[GOAT_BETTER].startswith("GOAT 67.9, WGCSL 62.1; probability of improvement 0.88, ")  # better on 15 of 17
    assert evidence[PESSIMISM_FAILS].startswith("GOAT 55.7, CQL+HER 1")
    assert evidence[PESSIMISM_FAILS].endswith("MSG+HER 8.7")


@pytest.mark.parametrize(
    ("group", "label", "unknown"),
    [
        ("reach-near-far", "GOAT", {OOD_HARDER, TAU_BEST, GOAT_BETTER, IMITATION_BETTER}),
        ("slide-near-far", "GOAT", {OOD_HARDER, TAU_BEST, GOAT_BETTER, IMITATION_BETTER, PESSIMISM_FAILS}),
        ("hand-near-far", "BC", {OOD_HARDER, TAU_BEST, HALF_LOST}),
        ("push-left-right", "DDPG+HER", {OOD_HARDER, TAU_BEST}),
    ],
)
def test_the_benchmarks_conclusions_need_their_cells(as_printed: dict, group: str, label: str, unknown: set[int]) -> None:
    cells = {key: cell for key, cell in as_printed.items() if key != (group, label)}
    assert judged(cells) == [None if claim in unknown else True for claim in range(6)]


def test_a_users_own_column_does_not_take_part(as_printed: dict) -> None:
    perfect = {
        (group, "Mine"): with_means((group, "Mine"), dict.fromkeys(PRINTED[group, "BC"], 100.0)) for group in BENCHMARK.groups
    }
    assert judged(as_printed | perfect) == [True] * 6


@pytest.mark.parametrize("suite", suites.SUITES, ids=lambda suite: suite.name)
def test_conclusions_need_only_what_their_suite_has(suite: suites.Suite) -> None:
    mine = {(group, column.label) for group in suite.groups for column in suite.columns}
    for conclusion in suite.statements:
        needs = conclusion.needs(suite)
        assert needs
        assert set(needs) <= mine


def test_a_step_of_the_ladder_rises_or_not_on_the_groups_that_are_there() -> None:
    """Without IID tasks in it: OOD success of +HER above or below that of BC, on one group of nine."""
    suite = suites.get("ablation-components")
    group = "reach-left-right"

    def cells(label: str, far: list[bool]) -> Cell:
        rows = []
        for task, outcomes in (("Right", [True, True]), ("Left", far)):
            place = {"start": [0.0], "goal": [0.0], "path": None, "final_distance": 0.0, "return": 0, "seed": 0, "split": "iid"}
            rows += [place | {"task": task, "episode": number, "success": met} for number, met in enumerate(outcomes)]
        return made_by_hand(group, rows, (0,), label)

    for mine, held in (([True, True], True), ([False, True], False), ([False, False], False)):
        first, *others = statements.check(suite, [cells("BC", [True, False]), cells("+HER", mine)])
        assert first.claim == "+HER raises the OOD average of BC"
        assert first.held is held
        assert "BC 50.0, +HER" in first.evidence
        assert "OOD tasks: 1" in first.evidence
        assert all(other.held is None for other in others)
