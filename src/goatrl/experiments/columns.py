"""The columns of experiments: those of the paper's tables, and newer methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from goatrl.learn.parameters import Number
from goatrl.types import Settings


@dataclasses.dataclass(frozen=True)
class Column:
    """One algorithm of a table: a registered name, numbers that differ from its own, and the
    paper's heading.
    """

    label: str
    algorithm: str
    overrides: Mapping[str, Number] = dataclasses.field(default_factory=dict)
    inputs: str = "absolute"  # what its networks see
    # kinds of maps with which it trains, of those that its robot declares
    symmetry: tuple[str, ...] = ()
    # of other batches than the group's, it makes as many updates as take equally many samples
    batch_size: int | None = None

    @property
    def names(self) -> frozenset[str]:
        """By which it is chosen."""
        return frozenset({self.label, self.algorithm})

    def schedule(self, settings: Settings) -> tuple[int, int]:
        """Its updates and the size of their batches."""
        if self.batch_size is None:
            return settings.updates, settings.batch_size
        samples = settings.updates * settings.batch_size
        return samples // self.batch_size, self.batch_size


def names_of(columns: Iterable[Column]) -> frozenset[str]:
    """All by which any of them is chosen."""
    return frozenset[str]().union(*(column.names for column in columns))


POINTREACH_COLUMNS = (
    Column("GOAT", "goat"),
    Column("WGCSL", "wgcsl"),
    Column("GCSL", "gcsl"),
    Column("Goal BC", "bc"),
    Column("HER", "ddpg_her"),
    Column("CQL+HER", "cql_her"),
)

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

SLIDE_BY_END = tuple(
    column
    for column in PAPER_COLUMNS
    if column.algorithm in ("goat_tau", "goat", "wgcsl", "marwil_her", "bc")
)

# Newer methods, in the setting of all algorithms here: networks, inputs, γ, optimiser, targets and
# budget are the group's, the rest is the method's own.
NEWER = (
    Column("GCIVL", "gcivl"),
    Column("GCIQL", "gciql"),
    Column("HIQL", "hiql"),
    Column("CRL", "crl"),
    Column("QRL", "qrl"),
    Column("SMORe", "smore"),
    Column("TRL", "trl"),
)
IMITATION = tuple(
    column for column in PAPER_COLUMNS if column.algorithm in ("goat_tau", "goat", "wgcsl", "gcsl")
)
# The numbers of the methods' own code. OGBENCH is what its agents share.
TARGETS: Mapping[str, Number] = {"polyak": 0.995, "target_period": 1, "learning_rate": 3e-4}
OGBENCH: Mapping[str, Number] = {
    **TARGETS,
    "architecture.hidden": (512, 512, 512),
    "architecture.activation": "gelu",
    "architecture.layer_norm": True,
    "discount": 0.99,
    "value_goals.discount": 0.99,
}
REFERENCE: Mapping[str, Mapping[str, Number]] = {
    "gcivl": OGBENCH,
    "gciql": OGBENCH,
    "hiql": OGBENCH,
    "crl": {**OGBENCH, "contrastive_q.latent": 512},
    "qrl": {**OGBENCH, "quasimetric.groups": 64},
    "smore": {**TARGETS, "discount": 0.99},
    "trl": {
        **OGBENCH,
        "architecture.hidden": (1024, 1024, 1024, 1024),
        "discount": 0.999,
        "value_goals.discount": 0.999,
    },
}
REFERENCE_BATCH = 1_024
REFERENCE_BATCHES = {"smore": 256}  # where it is another


def reference(column: Column, batches: bool = True) -> Column:
    """A newer method with the numbers of its own code, the size of batches among them or not."""
    name = column.algorithm
    size = REFERENCE_BATCHES.get(name, REFERENCE_BATCH) if batches else None
    return Column(f"{column.label} (reference)", name, REFERENCE[name], batch_size=size)


def in_ogbench(own: Mapping[str, Mapping[str, Number]]) -> tuple[Column, ...]:
    """OGBench's agents with its numbers, and with what they have besides on one of its datasets."""
    return tuple(
        Column(column.label, name, {**REFERENCE[name], **own[name]})
        for column in NEWER
        for name in [column.algorithm]
        if name in own
    )


# On its medium maze for a point.
IN_MAZE: Mapping[str, Mapping[str, Number]] = {
    "gcivl": {},
    "gciql": {"ddpgbc.alpha": 0.003},
    "hiql": {"goal_mixes.steps": 25},
    "crl": {"ddpgbc.alpha": 0.03},
    "qrl": {"ddpgbc.alpha": 0.0003},
}
# On its single cube: α = 1, 3 and 0.3 and 10 steps, as on all manipulation, are the methods' own.
IN_CUBE: Mapping[str, Mapping[str, Number]] = {name: {} for name in IN_MAZE}
MAZE_COLUMNS = in_ogbench(IN_MAZE)
CUBE_COLUMNS = in_ogbench(IN_CUBE)
OGBENCH_IMITATION = tuple(
    Column(
        column.label,
        column.algorithm,
        {name: number for name, number in OGBENCH.items() if not name.startswith("value_goals")},
    )
    for column in IMITATION
    if column.algorithm in ("goat", "gcsl")
)


EXPECTILES = {"gcivl": "expectile_v", "gciql": "expectile_q", "hiql": "expectile_v"}
KAPPAS = (0.3, 0.5, 0.7, 0.9)
BY_KAPPA = tuple(
    Column(
        f"{column.label}, kappa={kappa:g}",
        column.algorithm,
        {f"{EXPECTILES[column.algorithm]}.expectile": kappa},
    )
    for column in NEWER
    if column.algorithm in EXPECTILES
    for kappa in KAPPAS
)
