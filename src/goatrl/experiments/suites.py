"""Each experiment as data: which compositions, on which task groups, beside which table of the
paper.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from goatrl.algorithms.goat import ENSEMBLE
from goatrl.experiments.claims import (
    BENCHMARK,
    DIDACTIC,
    Conclusion,
    rises,
    rises_on_long_ways,
)
from goatrl.experiments.columns import (
    BY_KAPPA,
    CUBE_COLUMNS,
    IMITATION,
    KAPPAS,
    MAZE_COLUMNS,
    NEWER,
    OGBENCH_IMITATION,
    PAPER_COLUMNS,
    POINTREACH_COLUMNS,
    SLIDE_BY_END,
    Column,
    reference,
)
from goatrl.experiments.frontier import (
    CHOICES,
    DEVELOPMENT,
    FIRST_CHOICE,
    FOURTH_CHOICE,
    HIDDEN,
    MIRROR,
    SECOND_CHOICE,
    SECOND_ROUND,
    SEVENTH_CHOICE,
    SEVENTH_ROUND,
    SIXTH_CHOICE,
    THIRD_ROUND,
    TUNED_BY_GROUP,
    one_setting,
)
from goatrl.types import unknown


@dataclasses.dataclass(frozen=True)
class Suite:
    name: str
    summary: str
    groups: tuple[str, ...]
    columns: tuple[Column, ...]
    paper: Mapping[str, str]  # metric → table of the paper, where there is one
    claims: tuple[Conclusion, ...] = ()  # what the paper concludes from it
    percent: bool = False  # whether success is shown in percent, as the paper does for robots
    averages: str = ""  # table of the paper that has averages over tasks only
    # whether agents are also run on the grid of goals that is drawn as a map of what they reach
    maps: bool = False
    folder: str = ""  # for its records, where they are neither of robots nor of PointReach

    @property
    def home(self) -> str:
        """The folder that suites share which have cells in common."""
        return self.folder or ("robots" if self.percent else "pointreach")

    @property
    def decimals(self) -> int:
        """As many as the paper prints."""
        return 1 if self.percent else 2

    def scale(self, metric: str) -> float:
        """By which a recorded metric is multiplied to be shown."""
        return 100.0 if self.percent and metric == "success" else 1.0


POINTREACH_GROUPS = ("pointreach-expert-10", "pointreach-non-expert-10", "pointreach-non-expert-50")
ROBOTS = (
    "reach-left-right",
    "reach-near-far",
    "push-left-right",
    "push-near-far",
    "pick-left-right",
    "pick-low-high",
    "slide-left-right",
    "slide-near-far",
    "hand-near-far",
)
LADDER = (
    ("+HER", "BC"),
    ("+EAW", "+HER"),
    ("+DSW", "+EAW"),
    ("+Ens", "+DSW"),
    ("+UW", "+Ens"),
    ("+ER", "+UW"),
)
PUSH_AND_PICK = tuple(name for name in ROBOTS if name.startswith(("push", "pick")))
# What a method adds, and the one that it is most like without it.
ADDED = (
    ("HIQL", "GCIVL"),  # a hierarchy
    ("QRL", "GCIQL"),  # a quasimetric critic
    ("CRL", "GCIQL"),  # a contrastive critic
)
BEYOND_GOAT = tuple(rises(column.label, "GOAT") for column in NEWER)
# The paper's settings are tuned for each group of robots, those of the newer methods are not.
UNTUNED = one_setting("GOAT, one setting")
BEYOND_UNTUNED = tuple(rises(column.label, UNTUNED.label) for column in NEWER)
BEYOND_GOAT_IN_OGBENCH = (
    *(rises(column.label, "GOAT") for column in MAZE_COLUMNS),
    *(rises(*pair) for pair in ADDED),
)
OWN_NUMBERS = tuple(rises(reference(column).label, column.label) for column in NEWER)
PESSIMISTIC = (
    *(rises(f"{label}, kappa=0.3", f"{label}, kappa=0.9") for label in ("GCIVL", "GCIQL", "HIQL")),
    *(rises(f"HIQL, kappa={kappa:g}", f"GCIVL, kappa={kappa:g}") for kappa in KAPPAS),
)


def ablation(
    name: str,
    summary: str,
    columns: Sequence[Column],
    averages: str = "",
    groups: tuple[str, ...] = ROBOTS,
    table: str = "",
    claims: tuple[Conclusion, ...] = (),
) -> Suite:
    """An experiment of the appendix, on all robots unless said otherwise."""
    beside = {"success": table} if table else {}
    return Suite(
        f"ablation-{name}",
        summary,
        groups,
        tuple(columns),
        beside,
        claims,
        percent=True,
        averages=averages,
    )


SUITES = (
    Suite(
        "paper",
        "The paper's main table: all of its algorithms on the Fetch and Shadow Hand robots.",
        ROBOTS,
        PAPER_COLUMNS,
        {"success": "benchmark_success", "return": "benchmark_return"},
        claims=BENCHMARK,
        percent=True,
        maps=True,
    ),
    Suite(
        "pointreach",
        "The paper's 2-D didactic example: three datasets, six algorithms, goals on two circles.",
        POINTREACH_GROUPS,
        POINTREACH_COLUMNS,
        {"success": "pointreach_success", "return": "pointreach_return"},
        claims=DIDACTIC,
    ),
    Suite(
        "pointreach-imbalanced",
        "The same with a few trajectories on the lower half circle (appendix; the paper shows a "
        "figure, no numbers).",
        tuple(name.replace("pointreach-", "pointreach-imbalanced-") for name in POINTREACH_GROUPS),
        POINTREACH_COLUMNS,
        {},
    ),
    Suite(
        "pointreach-cql-alpha",
        "CQL+HER with the weight α of its penalty from 0.01 to 5 (appendix).",
        POINTREACH_GROUPS,
        tuple(
            Column(f"alpha={a:g}", "cql_her", {"cql_penalty.alpha": a})
            for a in (5.0, 2.0, 1.0, 0.1, 0.01)
        ),
        {"success": "pointreach_cql_alpha_success"},
    ),
    Suite(
        "slide-by-end",
        "Slide Left-Right after data that starts on both sides and only has to end on the right, "
        "beside the paper's numbers.",
        ("slide-left-right-by-end",),
        SLIDE_BY_END,
        {"success": "benchmark_success", "return": "benchmark_return"},
        percent=True,
    ),
    Suite(
        "newer",
        "Newer methods beside GOAT and other weighted imitation, in one setting.",
        ROBOTS,
        (*IMITATION, UNTUNED, *NEWER, Column("Expert", "expert")),
        {},
        claims=(
            *BEYOND_GOAT,
            *BEYOND_UNTUNED,
            *(rises(*pair) for pair in ADDED),
            *(rises_on_long_ways(*pair) for pair in ADDED),
        ),
        percent=True,
    ),
    Suite(
        "newer-reference",
        "Newer methods with the numbers of their own code, beside the setting of all algorithms; "
        "as many samples.",
        ROBOTS,
        (*NEWER, *map(reference, NEWER)),
        {},
        claims=OWN_NUMBERS,
        percent=True,
    ),
    Suite(
        "newer-kappa",
        "GCIVL, GCIQL and HIQL with the expectile κ of their value from 0.3 to 0.9.",
        ROBOTS,
        BY_KAPPA,
        {},
        claims=PESSIMISTIC,
        percent=True,
    ),
    Suite(
        "pointreach-newer",
        "Newer methods on PointReach beside GOAT and other weighted imitation, in one setting.",
        POINTREACH_GROUPS,
        (*IMITATION, *NEWER),
        {},
        claims=(*BEYOND_GOAT, *(rises(*pair) for pair in ADDED)),
    ),
    Suite(
        "pointreach-newer-reference",
        "Newer methods on PointReach with the numbers of their own code, but for batches and "
        "updates.",
        POINTREACH_GROUPS,
        (*NEWER, *(reference(column, batches=False) for column in NEWER)),
        {},
        claims=OWN_NUMBERS,
    ),
    Suite(
        "pointreach-newer-kappa",
        "GCIVL, GCIQL and HIQL on PointReach with the expectile κ from 0.3 to 0.9.",
        POINTREACH_GROUPS,
        BY_KAPPA,
        {},
        claims=PESSIMISTIC,
    ),
    Suite(
        "ogbench",
        "OGBench's agents with its numbers on pointmaze-medium-navigate, made by its rules.",
        ("ogbench-pointmaze",),
        MAZE_COLUMNS,
        {},
        percent=True,
        averages="ogbench_pointmaze",  # OGBench's own, of 8 seeds
        folder="ogbench",
    ),
    Suite(
        "ogbench-ood",
        "The same, GOAT and GCSL on data without a room and a corridor of the maze: goals there.",
        ("ogbench-pointmaze-ood",),
        (*OGBENCH_IMITATION, *MAZE_COLUMNS),
        {},
        claims=BEYOND_GOAT_IN_OGBENCH,
        percent=True,
        folder="ogbench",
    ),
    Suite(
        "ogbench-cube",
        "OGBench's agents with its numbers on cube-single-play, made by its rules.",
        ("ogbench-cube",),
        CUBE_COLUMNS,
        {},
        percent=True,
        averages="ogbench_cube",  # OGBench's own, of 8 seeds
        folder="ogbench",
    ),
    Suite(
        "ogbench-cube-ood",
        "The same, GOAT and GCSL on data without the cube on one side of the table: goals there.",
        ("ogbench-cube-ood",),
        (*OGBENCH_IMITATION, *CUBE_COLUMNS),
        {},
        claims=BEYOND_GOAT_IN_OGBENCH,
        percent=True,
        folder="ogbench",
    ),
    Suite(
        "frontier-development",
        "What was tried to generalise further than the paper, one setting for all groups.",
        DEVELOPMENT,
        (
            Column("GOAT", "goat"),
            one_setting("one setting"),
            one_setting("difference", "difference"),
            one_setting("frame", "goal-frame"),
            one_setting("5 policies", architecture__policies=5),
            one_setting("difference, 5 policies", "difference", architecture__policies=5),
            one_setting("frame, 5 policies", "goal-frame", architecture__policies=5),
            one_setting("difference, LayerNorm", "difference", architecture__layer_norm=True),
            one_setting("frame, LayerNorm", "goal-frame", architecture__layer_norm=True),
            one_setting("frame, AdamW", "goal-frame", optimizer="adamw"),
            one_setting("frame, relabel=0.5", "goal-frame", hindsight__probability=0.5),
            one_setting("frame, tau=0.3", "goal-frame", q_ensemble__tau=0.3),
            one_setting("frame, alpha_max=0", "goal-frame", percentile_selection__alpha_max=0.0),
            one_setting("mirror", symmetry=MIRROR),
            one_setting("difference, mirror", "difference", symmetry=MIRROR),
            one_setting("frame, mirror", "goal-frame", symmetry=MIRROR),
            one_setting(
                "difference, mirror, 5 policies",
                "difference",
                symmetry=MIRROR,
                architecture__policies=5,
            ),
            one_setting(
                "frame, mirror, 5 policies", "goal-frame", symmetry=MIRROR, architecture__policies=5
            ),
            *SECOND_ROUND,
            *THIRD_ROUND,
            Column("Expert", "expert"),
        ),
        {},
        percent=True,
    ),
    Suite(
        "frontier-hidden",
        "The last candidates of frontier, on goals that are hidden in the data of test groups.",
        HIDDEN,
        (*SIXTH_CHOICE, *SEVENTH_ROUND, Column("Expert", "expert")),
        {},
        percent=True,
    ),
    Suite(
        "frontier",
        "What was chosen on the development groups, on all groups, beside the paper's algorithms.",
        ROBOTS,
        (
            *PAPER_COLUMNS,
            one_setting("one setting"),
            one_setting("difference", "difference"),
            one_setting("mirror", symmetry=MIRROR),
            one_setting("difference, mirror", "difference", symmetry=MIRROR),
            *FIRST_CHOICE,
            *SECOND_CHOICE,
            *THIRD_ROUND,
            *FOURTH_CHOICE,
            *SEVENTH_CHOICE,
            *TUNED_BY_GROUP,
            Column("Expert", "expert"),
        ),
        {},
        claims=tuple(
            dataclasses.replace(rises(column.label, "GOAT"), part=False) for column in CHOICES
        ),
        percent=True,
        maps=True,
    ),
    ablation(
        "components",
        "From BC to GOAT(tau), one component after the other.",
        [
            Column("BC", "bc"),
            Column("+HER", "gcsl"),
            Column("+EAW", "marwil_her"),
            Column("+DSW", "wgcsl"),
            Column("+Ens", "wgcsl_ens"),
            Column("+UW", "goat"),
            Column("+ER", "goat_tau"),
        ],
        averages="ablation_components",
        claims=tuple(rises(*pair) for pair in LADDER),
    ),
    ablation(
        "ensemble-size",
        "GOAT with 2, 3, 5 and 7 critics.",
        [
            Column(f"N={n}", "goat", {} if n == ENSEMBLE else {"q_ensemble.size": n})
            for n in (2, 3, 5, 7)
        ],
        averages="ablation_ensemble_size",
    ),
    ablation(
        "value",
        "GOAT with Q(s, a, g), with V(s, g), and with V(s, g) and the χ² weight.",
        [
            Column("GOAT", "goat"),
            Column("GOAT(V)", "goat_v"),
            Column("GOAT(V+chi2)", "goat_v_chi2"),
        ],
        table="ablation_value_function_success",
    ),
    ablation(
        "expectile",
        "Expectile regression in WGCSL and GOAT, with the paper's τ < 0.5 and with 1 − τ.",
        [
            Column("WGCSL", "wgcsl"),
            Column("WGCSL+ER", "wgcsl_er"),
            Column("WGCSL+ER, 1-tau", "wgcsl_er_optimistic"),
            Column("GOAT", "goat"),
            Column("GOAT+ER", "goat_tau"),
            Column("GOAT+ER, 1-tau", "goat_tau_optimistic"),
        ],
        averages="ablation_expectile",
        claims=(
            rises("WGCSL+ER", "WGCSL"),
            rises("WGCSL+ER", "WGCSL+ER, 1-tau"),
            rises("GOAT+ER", "GOAT"),
            rises("GOAT+ER", "GOAT+ER, 1-tau"),
        ),
    ),
    ablation(
        "expectile-tau",
        "WGCSL+ER with τ from 0.1 to 0.9 (the paper shows a figure, no numbers).",
        [
            Column(f"tau={tau:g}", "wgcsl_er", {"q_ensemble.tau": tau})
            for tau in (0.1, 0.3, 0.5, 0.7, 0.9)
        ],
    ),
    ablation(
        "ensemble-others",
        "An ensemble of critics in other algorithms (the paper shows a figure, no numbers).",
        [
            Column("DDPG+HER", "ddpg_her"),
            Column("DDPG+HER+Ens", "ddpg_her_ens"),
            Column("MARWIL+HER", "marwil_her"),
            Column("MARWIL+HER+Ens", "marwil_her_ens"),
            Column("WGCSL", "wgcsl"),
            Column("WGCSL+Ens", "wgcsl_ens"),
        ],
    ),
    ablation(
        "her-others",
        "Relabelling in GoFAR and MARWIL (the paper shows a figure, no numbers).",
        [
            Column("GoFAR", "gofar"),
            Column("GoFAR+HER", "gofar_her"),
            Column("MARWIL", "marwil"),
            Column("MARWIL+HER", "marwil_her"),
        ],
    ),
    ablation(
        "underestimation",
        "WGCSL with values pushed down by CQL or by expectile regression (the paper shows a "
        "figure, no numbers).",
        [
            Column("WGCSL", "wgcsl"),
            Column("WGCSL+CQL", "wgcsl_cql"),
            Column("WGCSL+ER", "wgcsl_er"),
        ],
    ),
    ablation(
        "gofar",
        "The parts of GoFAR on HandReach.",
        [
            Column("GoFAR", "gofar"),
            Column("GoFAR(binary)", "gofar_binary"),
            Column("GoFAR(binary+Q)", "gofar_binary_q"),
            Column("GoFAR(binary+exp)", "gofar_binary_exp"),
            Column("GoFAR(binary+relabel)", "gofar_binary_relabel"),
            Column("GoFAR(binary+exp+relabel)", "gofar_binary_exp_relabel"),
        ],
        groups=("hand-near-far",),
        table="ablation_gofar_success",
    ),
    ablation(
        "drw",
        "WGCSL with and without the discounted relabelling weight.",
        [Column("WGCSL", "wgcsl"), Column("WGCSL+DRW", "wgcsl_drw")],
        averages="ablation_drw",
    ),
    ablation(
        "adsw",
        "WGCSL with a selection threshold that is learned for each state and goal.",
        [
            Column("WGCSL", "wgcsl"),
            *(
                Column(f"ADSW, beta={b:g}", "wgcsl_adsw", {"learned_selection.beta": b})
                for b in (0.8, 0.9, 0.95)
            ),
        ],
        groups=PUSH_AND_PICK,
        table="ablation_adaptive_dsw_success",
    ),
    ablation(
        "msg",
        "MSG+HER with its pessimism c from 1 to 7.",
        [
            Column(f"c={c:g}", "msg_her", {"ddpg_objective.pessimism": c})
            for c in (1.0, 3.0, 5.0, 7.0)
        ],
        averages="ablation_msg_c",
    ),
    ablation(
        "rnd",
        "GOAT with random network distillation as its uncertainty.",
        [Column("GOAT", "goat"), Column("GOAT(RND)", "goat_rnd"), Column("WGCSL", "wgcsl")],
        averages="ablation_rnd",
    ),
    ablation(
        "released",
        "The paper's equations beside what the released code runs.",
        [Column("GOAT", "goat"), Column("GOAT(released)", "goat_released")],
    ),
)


def get(name: str) -> Suite:
    known = {suite.name: suite for suite in SUITES}
    if name not in known:
        raise unknown("suite", name, known)
    return known[name]
