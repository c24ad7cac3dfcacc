"""Each experiment as data: which compositions, on which task groups, beside which table of the paper."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from goatrl.benchmark.statements import BENCHMARK, DIDACTIC, Conclusion
from goatrl.tasks import fetch, hand
from goatrl.types import unknown


@dataclasses.dataclass(frozen=True)
class Column:
    """One algorithm of a table: a registered name, numbers that differ from its own, and the paper's heading."""

    label: str
    algorithm: str
    overrides: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Suite:
    name: str
    summary: str
    groups: tuple[str, ...]
    columns: tuple[Column, ...]
    paper: Mapping[str, str]  # metric → table of the paper, where there is one
    statements: tuple[Conclusion, ...] = ()  # what the paper concludes from it
    percent: bool = False  # whether success is shown in percent, as the paper does for robots

    @property
    def decimals(self) -> int:
        """As many as the paper prints."""
        return 1 if self.percent else 2

    def scale(self, metric: str) -> float:
        """By which a recorded metric is multiplied to be shown."""
        return 100.0 if self.percent and metric == "success" else 1.0


POINTREACH_COLUMNS = (
    Column("GOAT", "goat"),
    Column("WGCSL", "wgcsl"),
    Column("GCSL", "gcsl"),
    Column("Goal BC", "bc"),
    Column("HER", "ddpg_her"),
    Column("CQL+HER", "cql_her"),
)
POINTREACH_GROUPS = ("pointreach-expert-10", "pointreach-non-expert-10", "pointreach-non-expert-50")

PAPER_COLUMNS = (
    Column("GOAT(tau)", "goat_tau"),
    Column("GOAT", "goat"),
    Column("WGCSL", "wgcsl"),
    Column("GCSL", "gcsl"),
    Column("BC", "bc"),
    Column("GoFAR", "gofar"),
    Column("DDPG+HER", "ddpg_her"),
    Column("CQL+HER", "cql_her"),
    Column("MSG+HER", "msg_her"),
    Column("MARWIL+HER", "marwil_her"),
    Column("IQL+HER", "iql_her"),
)

SUITES = (
    Suite(
        "paper",
        "The paper's main table: nine task groups on the Fetch and Shadow Hand robots, eleven algorithms.",
        tuple(group.name for group in (*fetch.GROUPS, *hand.GROUPS)),
        PAPER_COLUMNS,
        {"success": "benchmark_success", "return": "benchmark_return"},
        statements=BENCHMARK,
        percent=True,
    ),
    Suite(
        "pointreach",
        "The paper's 2-D didactic example: three datasets, six algorithms, goals on two circles.",
        POINTREACH_GROUPS,
        POINTREACH_COLUMNS,
        {"success": "pointreach_success", "return": "pointreach_return"},
        statements=DIDACTIC,
    ),
    Suite(
        "pointreach-imbalanced",
        "The same with a few trajectories on the lower half circle (appendix; the paper shows a figure, no numbers).",
        tuple(name.replace("pointreach-", "pointreach-imbalanced-") for name in POINTREACH_GROUPS),
        POINTREACH_COLUMNS,
        {},
    ),
    Suite(
        "pointreach-cql-alpha",
        "CQL+HER with the weight α of its penalty from 0.01 to 5 (appendix).",
        POINTREACH_GROUPS,
        tuple(Column(f"alpha={a:g}", "cql_her", {"conservative.alpha": a}) for a in (5.0, 2.0, 1.0, 0.1, 0.01)),
        {"success": "pointreach_cql_alpha_success"},
    ),
)


def get(name: str) -> Suite:
    known = {suite.name: suite for suite in SUITES}
    if name not in known:
        raise unknown("suite", name, known)
    return known[name]
