"""Training times: what is measured, what is refused, and what is said of it."""

from __future__ import annotations

import csv
import dataclasses
import io
from pathlib import Path

import pytest

from goatrl import cli
from goatrl.disk.versions import versions
from goatrl.experiments import records, timing
from goatrl.experiments.claims import Outcome
from goatrl.experiments.columns import Column
from goatrl.report import timing as times
from goatrl.report import webpage
from goatrl.types import GoatError
from helpers import made_timing

BC = Column("BC", "bc")
HELD, UNDECIDED, NOT_HELD = Outcome.HELD, Outcome.UNDECIDED, Outcome.NOT_HELD
PAPER = {column.label: 10.0 + place for place, column in enumerate(timing.COLUMNS)} | {
    "BC": 1.0,
    "GCSL": 1.5,
    "MSG+HER": 90.0,
    "CQL+HER": 50.0,
}


def test_the_time_of_all_updates_is_that_of_the_median_chunk() -> None:
    made = made_timing("GOAT", (0.2, 0.1, 0.6), interval=800, updates=40_000)
    assert made.seconds == pytest.approx(10.0)
    assert made.every_seconds == pytest.approx([10.0, 5.0, 30.0])


def test_records_come_back_in_the_order_of_the_suite(tmp_path: Path) -> None:
    written = [
        made_timing(label, (seconds,))
        for label, seconds in (("mine", 1.0), ("BC", 2.0), ("GOAT", 3.0))
    ]
    for each in written:
        timing.write(tmp_path, each)
    order = [column.label for column in timing.COLUMNS]
    assert order.index("GOAT") < order.index("BC")
    assert timing.read_all(tmp_path) == [written[2], written[1], written[0]]


def test_times_are_no_records_of_agents(tmp_path: Path) -> None:
    timing.write(tmp_path, made_timing("GOAT", (1.0,)))
    assert records.read_all(tmp_path) == []


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "training-time--GOAT.parquet").write_bytes(b"PAR1")
    with pytest.raises(GoatError, match=r"training-time--GOAT\.parquet is damaged"):
        timing.read_all(tmp_path)


def test_only_what_is_missing_is_measured(tmp_path: Path) -> None:
    updates = {"seeds": 2, "updates": 1_000}
    told: list[tuple[str, int]] = []
    timing.run(
        timing.plan(tmp_path, [BC], **updates),
        tmp_path,
        lambda each, done, record: told.append((each.label, done, record)),
    )
    (first,) = timing.read_all(tmp_path)
    assert told == [
        *(("BC", done, None) for done in range(2 + timing.CHUNKS)),
        ("BC", 1 + timing.CHUNKS, first),
    ]
    assert (first.interval, len(first.chunks)) == (20, timing.CHUNKS)
    assert min(first.chunks) > 0
    timing.run(
        timing.plan(tmp_path, [BC, Column("GCSL", "gcsl")], **updates),
        tmp_path,
        lambda *told: None,
    )
    again = {each.label: each for each in timing.read_all(tmp_path)}
    assert again["BC"] == first
    assert set(again) == {"BC", "GCSL"}


def test_another_configuration_is_refused(tmp_path: Path) -> None:
    timing.write(tmp_path, made_timing("BC", (1.0,), seeds=5, updates=40_000))
    assert timing.plan(tmp_path, [BC], seeds=5)[0].recorded is not None
    with pytest.raises(GoatError, match=r"BC .*differs in seeds, updates\); choose another --out"):
        timing.plan(
            tmp_path, [Column("GCSL", "gcsl")], seeds=2, updates=1_000
        )  # a table is of one configuration
    timing.write(tmp_path, made_timing("GCSL", (1.0,)))
    with pytest.raises(
        GoatError,
        match=r"GCSL .*differs in algorithm, hyperparameters\.hindsight\.probability\);",
    ):
        timing.plan(tmp_path, [Column("GCSL", "bc")], seeds=5)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"seeds": 0}, "number of seeds must be at least 1, not 0"),
        ({"seeds": 1, "updates": 0}, "updates must be a positive multiple of target_period"),
        ({"seeds": 1, "updates": 1_010}, "updates must be a positive multiple of target_period"),
    ],
)
def test_impossible_numbers_are_refused(
    wanted: dict[str, int], message: str, tmp_path: Path
) -> None:
    with pytest.raises(GoatError, match=message):
        timing.plan(tmp_path, [BC], **wanted)


def test_times_of_two_machines_do_not_mix(tmp_path: Path) -> None:
    made = made_timing("BC", (1.0,))
    timing.write(
        tmp_path, dataclasses.replace(made, versions={**made.versions, "device": "Abacus"})
    )
    with pytest.raises(
        GoatError,
        match=f"measured on Abacus, but this is {versions()['device']}; choose another --out",
    ):
        timing.plan(tmp_path, [Column("GCSL", "gcsl")], seeds=5)
    assert (
        timing.plan(tmp_path, [BC], seeds=5)[0].recorded is not None
    )  # to be printed again it needs no machine


def outcomes(seconds: dict[str, float | tuple[float, ...]]) -> list[Outcome]:
    """Of times by one chunk or by several."""
    chunks = {
        label: times if isinstance(times, tuple) else (times,) for label, times in seconds.items()
    }
    return [
        verdict.outcome
        for verdict in timing.check(
            [made_timing(label, tuple(s / 50 for s in c)) for label, c in chunks.items()]
        )
    ]


def test_claims() -> None:
    assert outcomes(PAPER) == [HELD, HELD, HELD]
    slow = PAPER | {"GCSL": 40.0, "GOAT": 60.0}
    assert outcomes(slow) == [NOT_HELD, HELD, NOT_HELD]
    as_in_the_paper = [made_timing(label, (seconds / 50,)) for label, seconds in PAPER.items()]
    assert timing.check(as_in_the_paper)[1].evidence.startswith(
        "MSG+HER 90.0 s [90.0–90.0], CQL+HER 50.0 s [50.0–50.0]"
    )
    last = timing.check(
        [made_timing(label, (1.0 if label == "CQL+HER" else s / 50,)) for label, s in slow.items()]
    )[2]
    assert (
        last.evidence
        == "MSG+HER 90.0 s [90.0–90.0], GOAT 60.0 s [60.0–60.0], CQL+HER 50.0 s [50.0–50.0]"
    )
    assert [verdict.outcome for verdict in timing.check(as_in_the_paper[1:])] == [
        Outcome.NOT_CHECKED
    ] * 3


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"MSG+HER": (70.0, 90.0, 95.0), "CQL+HER": (49.0, 50.0, 69.0)}, [HELD, HELD, HELD]),
        (
            {"MSG+HER": (70.0, 90.0, 95.0), "CQL+HER": (49.0, 50.0, 71.0)},
            [HELD, UNDECIDED, UNDECIDED],
        ),
        (
            {"MSG+HER": (70.0, 90.0, 95.0), "CQL+HER": (49.0, 50.0, 70.0)},
            [HELD, UNDECIDED, UNDECIDED],
        ),  # both end at 70
        ({"MSG+HER": 51.0, "CQL+HER": (52.0, 60.0)}, [HELD, NOT_HELD, NOT_HELD]),
        ({"GOAT": (45.0, 51.0)}, [HELD, HELD, UNDECIDED]),
        (
            {"GOAT": (51.0, 52.0), "GOAT(tau)": (45.0, 60.0)},
            [HELD, HELD, NOT_HELD],
        ),  # two are surely longer
        ({"GOAT": (51.0, 91.0)}, [HELD, UNDECIDED, NOT_HELD]),
        ({"BC": (1.0, 30.0), "GCSL": (2.0, 3.0)}, [UNDECIDED, HELD, HELD]),
        ({"BC": (1.0, 30.0), "GCSL": (89.0, 90.0)}, [NOT_HELD, UNDECIDED, NOT_HELD]),
    ],
)
def test_chunks_that_overlap_decide_nothing(
    changes: dict[str, tuple[float, ...]], expected: list[Outcome]
) -> None:
    assert outcomes(PAPER | changes) == expected


def test_tables_have_multiples_of_bc() -> None:
    found = [made_timing("GOAT", (0.3, 0.3, 0.5)), made_timing("BC", (0.1, 0.1, 0.1))]
    assert "| GOAT | 15.0 | 15.0–25.0 | 3.00 |" in times.markdown(found, [])
    assert "| GOAT | 15.0 | 15.0–25.0 | – |" in times.markdown(found[:1], [])
    rows = list(csv.DictReader(io.StringIO(times.to_csv(found))))
    assert [(row["label"], row["seconds"], row["high"]) for row in rows] == [
        ("GOAT", "15.000", "25.000"),
        ("BC", "5.000", "5.000"),
    ]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            [made_timing("GOAT", (0.3,), updates=1_000), made_timing("BC", (0.1,), updates=1_000)],
            "--algorithms goat bc --seeds 5 --updates 1000",
        ),
        ([made_timing(column.label, (0.1,)) for column in timing.COLUMNS], "--seeds 5"),
    ],
)
def test_the_command_of_the_page_gives_the_records_again(
    found: list[timing.Timing], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert times.command(found) == f"goat bench training-time {words}"
    for each in found:
        timing.write(tmp_path, each)
    assert cli.main([*times.command(found).split()[1:], "--out", str(tmp_path)]) == 0
    assert "0 to run" in capsys.readouterr().out


def test_an_own_algorithm_becomes_a_row_and_an_edited_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (
        "from goatrl.algorithms import register\nfrom goatrl.algorithms.imitation import bc\n\n\n"
        "@register('Mine [new]')\ndef mine(settings):\n    'Mine.'\n    return bc(settings)\n"
    )
    Path("mine.py").write_text(text)
    line = [
        "bench",
        "training-time",
        "--algorithms",
        "./mine.py",
        "--seeds",
        "1",
        "--updates",
        "1000",
        "--out",
        "times",
    ]
    assert cli.main(line) == 0
    (found,) = timing.read_all(Path("times"))
    assert (
        times.command([found])
        == "goat bench training-time --algorithms FILE.py --seeds 1 --updates 1000"
    )
    assert "Mine [new]" in capsys.readouterr().out
    Path("mine.py").write_text(text + "# edited\n")
    assert cli.main(line) == 2
    assert "(differs in source; your algorithm's file" in " ".join(capsys.readouterr().err.split())


def test_goat_bench_prints_and_writes_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "times"
    line = [
        "bench",
        "training-time",
        "--algorithms",
        "bc",
        "--seeds",
        "1",
        "--updates",
        "1000",
        "--out",
        str(out),
    ]
    assert cli.main(line) == 0
    printed = capsys.readouterr().out
    assert "1 algorithm of 1 seed, 1 to run" in printed
    assert "1,000 updates of 1 seed, batch 512, on cpu" in printed
    assert "| BC |" in (out / "training-time.md").read_text()
    assert '"label":"BC"' in webpage.page(tmp_path)
    assert cli.main(line) == 0
    assert "0 to run" in capsys.readouterr().out


@pytest.mark.parametrize(
    "option",
    [["--groups", "push-near-far"], ["--data", "push-left-right=x.npz"], ["--episodes", "3"]],
)
def test_options_that_mean_nothing_here_are_refused(
    option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "training-time", *option, "--out", str(tmp_path)]) != 0
    assert option[0] in capsys.readouterr().err
