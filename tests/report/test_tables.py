"""Tables: the arithmetic over seeds, the paper's numbers beside ours, and the same content in every
format.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from goatrl import algorithms, tasks
from goatrl.experiments import paper, statistics, suites
from goatrl.experiments.records import Cell
from goatrl.experiments.statistics import Average, Interval
from goatrl.report import tables
from goatrl.report.tables import Entry
from helpers import made_by_hand

SUITE = suites.get("pointreach")


def make_cell(
    group: str, successes: Mapping[str, Sequence[int]], steps: int = 10, label: str = "GOAT"
) -> Cell:
    """How many of the 20 episodes of each task succeed, seed by seed; a success pays `steps`, a
    failure nothing.
    """
    rows = [
        {
            "task": task.name,
            "split": task.split,
            "seed": seed,
            "episode": episode,
            "success": episode < count,
            "return": steps if episode < count else 0,
            "final_distance": 0.0,
            "start": [0.0, 0.0],
            "goal": task.evaluation()[1][episode].tolist(),
            "path": None,
        }
        for task in tasks.get(group).tasks
        for seed, count in enumerate(successes[task.name])
        for episode in range(20)
    ]
    seeds = tuple(range(len(next(iter(successes.values())))))
    return made_by_hand(group, rows, seeds, label)


def entry(
    mean: float,
    paper: tuple[float, float] | None,
    column: str = "GOAT",
    dataset: str = "Expert 10",
    task: str = "R10",
) -> Entry:
    return Entry(dataset, task, column, mean, 0.125, 5, paper)


CELLS = [
    make_cell("pointreach-expert-10", {"R10": (10, 15, 20), "R20": (0, 0, 20)}),
    make_cell("pointreach-expert-10", {"R10": (0, 0, 0), "R20": (1, 1, 1)}, label="HER"),
]


def test_mean_and_population_deviation_over_seeds() -> None:
    found = tables.entries(SUITE, CELLS, "success")
    assert [(e.dataset, e.task, e.column, e.seeds) for e in found] == [
        ("Expert 10", "R10", "GOAT", 3),
        ("Expert 10", "R20", "GOAT", 3),
        ("Expert 10", "R10", "HER", 3),
        ("Expert 10", "R20", "HER", 3),
    ]
    np.testing.assert_allclose([e.mean for e in found], [0.75, 1 / 3, 0.0, 0.05])
    # Divided by the number of seeds, not by one less: sqrt((0.25² + 0 + 0.25²) / 3) and so on.
    np.testing.assert_allclose(
        [e.std for e in found], [math.sqrt(0.125 / 3), math.sqrt(2) / 3, 0.0, 0.0], atol=1e-12
    )


def test_return_is_averaged_in_the_same_way() -> None:
    found = tables.entries(SUITE, CELLS, "return")
    np.testing.assert_allclose([e.mean for e in found], [7.5, 10 / 3, 0.0, 0.5])


def test_the_papers_numbers_stand_beside() -> None:
    # Copied from the paper's tables by hand.
    assert [e.paper for e in tables.entries(SUITE, CELLS, "success")] == [
        (0.86, 0.08),
        (0.48, 0.21),
        (0.0, 0.0),
        (0.0, 0.0),
    ]
    assert [e.paper for e in tables.entries(SUITE, CELLS, "return")] == [
        (34.69, 2.81),
        (15.34, 5.35),
        (0.05, 0.0),
        (0.0, 0.0),
    ]
    noisy = [make_cell("pointreach-non-expert-10", {"R10": (1,), "R20": (1,)}, label="Goal BC")]
    assert [e.paper for e in tables.entries(SUITE, noisy, "success")] == [
        (0.29, 0.06),
        (0.06, 0.04),
    ]


def test_a_variant_stands_beside_the_numbers_of_its_group() -> None:
    suite = suites.get("slide-by-end")
    successes = {task.name: [1, 0] for task in tasks.get("slide-left-right-by-end").tasks}
    cell = make_cell("slide-left-right-by-end", successes, label="WGCSL")
    first = tables.entries(suite, [cell], "success")[0]
    assert (first.dataset, first.task, first.paper) == (
        "Slide Left-Right by end",
        "Right2Right",
        (70.8, 13.5),
    )
    over_all = next(
        each for each in statistics.summary(suite, [cell], "success") if each.split == "ood"
    )
    assert over_all.paper == pytest.approx((36.2 + 50.7 + 35.3) / 3)


def test_every_cell_of_the_suite_has_a_number_in_the_paper() -> None:
    one = {"R10": (1,), "R20": (1,)}
    cells = [
        make_cell(group, one, label=column.label)
        for group in SUITE.groups
        for column in SUITE.columns
    ]
    for metric in ("success", "return"):
        found = tables.entries(SUITE, cells, metric)
        assert len(found) == 3 * 6 * 2
        assert all(e.paper is not None for e in found)


def test_the_benchmarks_algorithms_are_labelled_as_in_the_papers_table() -> None:
    printed = {row["algorithm"] for row in paper.table("benchmark_success")}
    eleven = [
        "goat",
        "goat_tau",
        "wgcsl",
        "gcsl",
        "bc",
        "gofar",
        "marwil_her",
        "iql_her",
        "ddpg_her",
        "cql_her",
        "msg_her",
    ]
    assert {algorithms.get(name).label for name in eleven} == printed


def test_a_column_or_a_suite_that_the_paper_does_not_have() -> None:
    assert [
        e.paper
        for e in tables.entries(SUITE, [dataclasses.replace(CELLS[0], label="Mine")], "success")
    ] == [None, None]
    imbalanced = suites.get("pointreach-imbalanced")
    cell = make_cell("pointreach-imbalanced-expert-10", {"R10": (1,), "R20": (1,)})
    found = tables.entries(imbalanced, [cell], "success")
    assert [(e.dataset, e.paper) for e in found] == [("Imbalanced Expert 10", None)] * 2


@pytest.mark.parametrize(
    ("mean", "paper", "far"),
    [
        (0.5, (0.5, 0.125), False),
        (0.754, (0.5, 0.125), False),  # two, but for the rounding of the paper's two decimals
        (0.756, (0.5, 0.125), True),
        (0.246, (0.5, 0.125), False),
        (0.244, (0.5, 0.125), True),
        (0.0, (0.0, 0.0), False),
        (0.01, (0.0, 0.0), True),  # the paper never succeeded, we did
        (0.9, (1.0, 0.0), True),  # the paper always succeeded, we did not
    ],
)
def test_more_than_two_of_the_papers_deviations_is_far(
    mean: float, paper: tuple[float, float], far: bool
) -> None:
    one, near = entry(mean, paper), entry(0.5, (0.5, 0.125), column="near")
    result = tables.agreement([near, one])
    assert result is not None
    assert result.far == ((one,) if far else ())


def test_agreement_by_hand() -> None:
    table = [
        entry(0.1, (0.2, 1.0), "A"),
        entry(0.9, (0.5, 1.0), "B"),
        entry(0.4, (0.6, 1.0), "C"),
        entry(0.3, None, "D"),
    ]
    result = tables.agreement(table)
    assert result is not None
    assert result.cells == 3  # D has nothing to agree with
    assert result.mean_absolute_difference == pytest.approx((0.1 + 0.4 + 0.2) / 3)
    assert result.rank_correlation == pytest.approx(0.5)  # ranks 1 3 2 against 1 2 3
    assert result.far == ()


@pytest.mark.parametrize(("means", "expected"), [((0.1, 0.2, 0.3), 1.0), ((0.3, 0.2, 0.1), -1.0)])
def test_rank_correlation_has_a_sign(means: tuple, expected: float) -> None:
    result = tables.agreement(
        [entry(mean, (theirs, 1.0)) for mean, theirs in zip(means, (0.5, 0.6, 0.7), strict=True)]
    )
    assert result is not None
    assert result.rank_correlation == pytest.approx(expected)


def test_agreement_needs_numbers_to_compare() -> None:
    assert tables.agreement([]) is None
    assert tables.agreement([entry(0.5, (0.5, 0.1)), entry(0.5, None)]) is None
    flat = tables.agreement([entry(0.5, (0.5, 0.1)), entry(0.5, (0.6, 0.1))])
    assert flat is not None
    assert math.isnan(flat.rank_correlation)  # without an order there is nothing to correlate
    assert flat.mean_absolute_difference == pytest.approx(0.05)


TABLE = [
    entry(0.75, (0.86, 0.08), "GOAT"),
    entry(1 / 3, (0.48, 0.21), "GOAT", task="R20"),
    entry(0.5, None, "Mine"),
    entry(1.0, (1.0, 0.0), "GOAT", dataset="Non-Expert 50"),
]


def test_markdown() -> None:
    assert tables.markdown(TABLE) == (
        "| dataset | goals | GOAT | Mine |\n"
        "|---|---|---:|---:|\n"
        "| Expert 10 | R10 | 0.75 ± 0.12 (0.86 ± 0.08) | 0.50 ± 0.12 |\n"
        "| Expert 10 | R20 | 0.33 ± 0.12 (0.48 ± 0.21) |  |\n"
        "| Non-Expert 50 | R10 | 1.00 ± 0.12 (1.00 ± 0.00) |  |\n"
    )


def test_to_csv() -> None:
    text = tables.to_csv({"success": TABLE, "return": [entry(10.0, None, 'A, "B"')]})
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 5
    assert rows[0] == {
        "metric": "success",
        "dataset": "Expert 10",
        "goals": "R10",
        "algorithm": "GOAT",
        "mean": "0.7500",
        "std": "0.1250",
        "seeds": "5",
        "paper_mean": "0.86",
        "paper_std": "0.08",
    }
    assert (rows[2]["paper_mean"], rows[2]["paper_std"]) == ("", "")
    assert (rows[4]["metric"], rows[4]["algorithm"], rows[4]["mean"]) == (
        "return",
        'A, "B"',
        "10.0000",
    )
    assert "\r" not in text


def test_one_seed_has_no_deviation() -> None:
    """The paper's, from five, stays."""
    alone = tables.entries(
        SUITE, [make_cell("pointreach-expert-10", {"R10": (15,), "R20": (0,)})], "success"
    )
    assert "| Expert 10 | R10 | 0.75 (0.86 ± 0.08) |" in tables.markdown(alone)
    lines = shown(alone).splitlines()
    theirs = next(place for place, line in enumerate(lines) if "paper" in line)
    assert lines[theirs - 1].split()[-1] == "0.75"
    assert lines[theirs].split()[-1] == "0.86±0.08"
    assert r"Expert 10 & R10 & \textbf{0.75} \\" in tables.latex(alone)
    (row, _) = csv.DictReader(io.StringIO(tables.to_csv({"success": alone})))
    assert (row["mean"], row["std"], row["seeds"]) == ("0.7500", "", "1")


def printed(drawn: Table, width: int = 80) -> str:
    buffer = io.StringIO()
    Console(file=buffer, width=width, color_system=None).print(drawn)
    return buffer.getvalue()


def shown(table: Sequence[Entry], width: int = 160) -> str:
    return printed(tables.terminal(table), width)


def test_a_wide_table_is_cut_between_columns_and_never_within() -> None:
    labels = [f"algorithm {number}" for number in range(9)]
    wide = [
        dataclasses.replace(entry(100.0, None), column=label, task="Right2Right to Left2Left")
        for label in labels
    ]
    parts = tables.terminal_parts(wide, decimals=1)
    found = []
    for part in parts:
        lines = printed(part).splitlines()
        assert "…" not in printed(part)
        assert max(len(line.rstrip()) for line in lines) <= 80
        found.append(lines[0].count("algorithm"))
    assert sum(found) == 9
    assert len(parts) == 3, "no more parts than needed: labels of 35 and columns of 13 characters"
    alone = tables.terminal_parts(wide[:1])
    assert len(alone) == 1


def test_terminal_has_ours_above_the_papers() -> None:
    lines = shown(TABLE).splitlines()
    theirs = next(place for place, line in enumerate(lines) if "paper" in line)
    assert "Expert 10 R10" in lines[theirs - 1]
    assert "0.75±0.12" in lines[theirs - 1]
    assert "0.50±0.12" in lines[theirs - 1]
    assert "0.86±0.08" in lines[theirs]
    assert sum("R20" in line for line in lines) == 1


def test_terminal_without_a_paper_does_not_mention_one() -> None:
    text = shown([entry(0.5, None)])
    assert "0.50±0.12" in text
    assert "paper" not in text


def test_terminal_shows_six_algorithms_in_80_columns() -> None:
    labels = ["GOAT", "WGCSL", "GCSL", "Goal BC", "HER", "CQL+HER"]
    text = shown([entry(0.5, (0.5, 0.125), label) for label in labels], width=80)
    assert "…" not in text
    assert text.count("0.50±0.12") == 12


def mean_of(
    label: str,
    split: str,
    mean: float,
    paper: float | None,
    tasks: int = 2,
    of: int = 2,
    group: str = "",
    iqm: float = 0.5,
) -> Average:
    return Average(
        label,
        split,
        tasks,
        mean,
        0.125,
        Interval(mean, mean - 0.25, mean + 0.125),
        0.0625,
        iqm,
        paper,
        of,
        group,
    )


AVERAGES = [
    mean_of("GOAT", "all", 0.5, 0.625, group="Expert 10"),
    mean_of("GOAT", "ood", 0.5, 0.75, tasks=1, of=3),
    mean_of("GOAT", "all", 0.75, None, tasks=6, of=6),
    mean_of("Mine", "all", 0.25, None, group="Expert 10"),
    mean_of("Mine", "ood", 0.375, None, tasks=3, of=3),
    mean_of("Mine", "all", 0.25, None, tasks=6, of=6),
]


def test_averages_in_markdown() -> None:
    text = tables.averages_markdown({"success": AVERAGES, "return": AVERAGES[2:3]}, decimals=3)
    assert text.split("\n\n", 1)[1] == (
        "## success\n\n"
        "| average over | GOAT | Mine |\n"
        "|---|---:|---:|\n"
        "| Expert 10 | 0.500 [0.250, 0.625] (0.625), episodes ±0.062 | 0.250 [0.000, 0.375], "
        "episodes ±0.062 |\n"
        "| OOD tasks (1 of 3) | 0.500 [0.250, 0.625] (0.750), episodes ±0.062 |  |\n"
        # over other tasks, hence in another row
        "| OOD tasks (3) |  | 0.375 [0.125, 0.500], episodes ±0.062 |\n"
        "| all tasks (6) | 0.750 [0.500, 0.875], episodes ±0.062 | 0.250 [0.000, 0.375], episodes "
        "±0.062 |\n"
        "\n## return\n\n"
        "| average over | GOAT |\n"
        "|---|---:|\n"
        "| all tasks (6) | 0.750 [0.500, 0.875], episodes ±0.062 |\n"
    )


def test_averages_in_80_columns() -> None:
    wide = [
        mean_of("MARWIL+HER", split, 100.0, 100.0, 10, 26, iqm=99.5)
        for split in ("iid", "ood", "all")
    ]
    text = printed(tables.averages_terminal(wide, decimals=1))
    lines = [line.split() for line in text.splitlines()]
    assert "…" not in text
    assert lines[0] == ["mean", "95", "%", "interval", "episodes", "IQM", "paper"]
    assert [line for line in lines if "tasks" in line] == [
        [split, "tasks", "(10", "of", "26)"] for split in ("IID", "OOD", "all")
    ]
    rows = [line for line in lines if line[:1] == ["MARWIL+HER"]]
    assert rows == [["MARWIL+HER", "100.0", "99.8", "to", "100.1", "±0.1", "99.5", "100.0"]] * 3


def test_averages_without_a_paper() -> None:
    text = printed(tables.averages_terminal(AVERAGES[-1:]))
    assert "None" not in text
    assert text.splitlines()[-1].split() == [
        "Mine",
        "0.25",
        "0.00",
        "to",
        "0.38",
        "±0.06",
        "0.50",
    ]


def test_averages_as_shares_of_the_experts() -> None:
    below = dataclasses.replace(mean_of("MARWIL+HER", "ood", 60.0, 99.5, 17, 17), share=66.6)
    expert = mean_of("Expert", "ood", 90.0, None, 17, 17)
    shares = printed(tables.averages_terminal([below, expert], decimals=1))
    lines = shares.splitlines()
    assert "…" not in shares
    assert lines[0].split()[-2:] == ["of", "expert"]
    assert next(line for line in lines if "MARWIL" in line).split()[-2:] == ["67", "%"]
    assert next(line for line in lines if "Expert" in line).split()[-1] == "0.5"
    text = tables.averages_markdown({"success": [below, expert]}, decimals=1)
    assert "episodes ±0.1, 67 % of the expert's |" in text
    assert "its success is the ceiling" in text


def test_no_algorithm_is_ranked_with_the_expert() -> None:
    ceiling = dataclasses.replace(entry(0.99, None, "Expert"), ceiling=True)
    lines = tables.latex([*TABLE[:3], ceiling], beside_paper=False).splitlines()
    expected = r"\textbf{0.75$\pm$0.12} & \underline{0.50$\pm$0.12} & 0.99$\pm$0.12 \\"
    assert next(line for line in lines if "R10" in line).endswith(expected)


def test_the_order_of_algorithms_is_compared_with_the_papers() -> None:
    averages = [
        mean_of(label, "ood", mean, theirs)
        for label, mean, theirs in (
            ("A", 0.1, 0.2),
            ("B", 0.9, 0.5),
            ("C", 0.4, 0.6),
            ("Mine", 0.0, None),
        )
    ]
    assert tables.order_agreement(averages, "ood") == (
        3,
        pytest.approx(0.5),
    )  # ranks 1 3 2 against 1 2 3
    assert tables.order_agreement(averages, "iid") is None
    assert tables.order_agreement(averages[1:], "ood") is None  # two have hardly an order
    groups = [dataclasses.replace(each, group="Expert 10") for each in averages]
    assert tables.order_agreement(groups, "ood") is None


def test_latex() -> None:
    assert tables.latex(TABLE).splitlines() == [
        r"\begin{tabular}{llcc}",
        r"\toprule",
        r"Task Group & Task & GOAT & Mine \\",
        r"\midrule",
        r"Expert 10 & R10 & \textbf{0.75$\pm$0.12} & \underline{0.50$\pm$0.12} \\",
        r" & {\scriptsize (paper)} & {\scriptsize (0.86$\pm$0.08)} &  \\",
        r" & R20 & \textbf{0.33$\pm$0.12} &  \\",
        r" & {\scriptsize (paper)} & {\scriptsize (0.48$\pm$0.21)} &  \\",
        r"\midrule",
        r"Non-Expert 50 & R10 & \textbf{1.00$\pm$0.12} &  \\",
        r" & {\scriptsize (paper)} & {\scriptsize (1.00$\pm$0.00)} &  \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert "paper" not in tables.latex(TABLE, beside_paper=False)


def test_latex_with_averages_under_groups_and_at_the_end() -> None:
    lines = tables.latex(TABLE[:1] + TABLE[2:3], AVERAGES, beside_paper=False).splitlines()
    assert lines[5:] == [
        r" & Average & \textbf{0.50} & \underline{0.25} \\",
        r"\midrule",
        r"Average & OOD tasks (1 of 3) & \textbf{0.50} &  \\",
        r" & OOD tasks (3) &  & \textbf{0.38} \\",
        r" & all tasks (6) & \textbf{0.75} & \underline{0.25} \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert (
        r" & {\scriptsize (paper)} & {\scriptsize (0.62)} &  \\"
        in tables.latex(TABLE, AVERAGES).splitlines()
    )


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        (
            (0.901, 0.899, 0.5, 0.501, 0.4),
            [r"\textbf", r"\textbf", r"0.50$\pm$0.12", r"0.50$\pm$0.12", r"0.40$\pm$0.12"],
        ),
        ((0.9, 0.5, 0.501, 0.4), [r"\textbf", r"\underline", r"\underline", r"0.40$\pm$0.12"]),
    ],
    ids=["where two are best none is second", "two are second"],
)
def test_what_reads_the_same_in_latex_is_marked_the_same(
    means: Sequence[float], expected: list[str]
) -> None:
    row = tables.latex(
        [entry(mean, None, label) for label, mean in zip("ABCDE", means, strict=False)]
    ).splitlines()[4]
    marks = [cell.split("{")[0].strip() for cell in row.removesuffix(r" \\").split("&")[2:]]
    assert marks == expected


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("GOAT(tau)", r"GOAT($\tau$)"),
        ("alpha=0.01", r"$\alpha$=0.01"),
        ("my_goat & 5 %", r"my\_goat \& 5 \%"),
        ("a^b~{c}\\", r"a\textasciicircum{}b\textasciitilde{}\{c\}\textbackslash{}"),
        ("Taurus #1 $", r"Taurus \#1 \$"),
        ("CQL+HER", "CQL+HER"),
    ],
)
def test_labels_as_latex_prints_them(label: str, expected: str) -> None:
    assert (
        tables.latex([entry(0.5, None, label)]).splitlines()[2]
        == rf"Task Group & Task & {expected} \\"
    )


LONG = "bounded, mirror, turns, random, averaged, 5 policies"


def test_long_labels_of_averages_go_on_in_the_next_line() -> None:
    """All numbers are shown, and what goes on is as far from the margin."""
    below = dataclasses.replace(mean_of(LONG, "ood", 60.0, None, 17, 17), share=66.6)
    expert = mean_of("Expert", "ood", 90.0, None, 17, 17)
    shares = printed(tables.averages_terminal([below, expert], decimals=1))
    lines = shares.splitlines()
    assert "…" not in shares
    first = next(place for place, line in enumerate(lines) if "60.0" in line)
    assert lines[first].split()[-1] == "%"
    label = " ".join(line[: lines[0].index("mean")].strip() for line in lines[first : first + 2])
    assert label.startswith("bounded, mirror, turns,")
    assert lines[first + 1].startswith("  ")
    assert lines[first + 1][2] != " "


def test_long_headings_go_on_in_the_next_line() -> None:
    table = [entry(100.0, None, column=label) for label in (LONG, "GOAT")]
    (part,) = tables.terminal_parts(table, decimals=1)
    heading = printed(part).split("─")[0].splitlines()
    assert "…" not in printed(part)
    assert " ".join(" ".join(line.replace("GOAT", "").split()) for line in heading).strip() == LONG
    assert max(len(line.split("GOAT")[0].strip()) for line in heading) <= tables.HEADING


def test_labels_stay_in_a_narrow_terminal() -> None:
    below = dataclasses.replace(mean_of("MARWIL+HER", "ood", 60.0, 50.0, 17, 17), share=66.6)
    text = printed(tables.averages_terminal([below], decimals=1), width=60)
    assert "MARWIL+HER" in text
    assert "OOD tasks (17)" in text
