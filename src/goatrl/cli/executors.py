"""Which machines a command uses: this one, or those of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

from tyro.conf import arg

from goatrl.cli.console import console, plural
from goatrl.experiments import cluster
from goatrl.experiments.experiment import Executor, LocalExecutor
from goatrl.types import GoatError

Name = Annotated[
    Literal["local", "ray"],
    arg(
        help="Where it runs: on this machine, or on a Ray cluster (docs/cluster.md). The results "
        "are the same."
    ),
]
Address = Annotated[
    str | None,
    arg(
        metavar="HOST:PORT",
        help="The Ray cluster to use; `auto` for the one that this machine is part of. If omitted, "
        "Ray is started on this machine for as long as the command runs.",
    ),
]


@contextmanager
def executing(name: Name, address: Address) -> Iterator[Executor]:
    """The executor of that name. Whatever is simulated meanwhile is simulated there."""
    if name == "local":
        if address is not None:
            raise GoatError("--address is that of a Ray cluster; add --executor ray, or omit it")
        yield LocalExecutor()
        return
    with cluster.connected(cluster.LOCAL if address is None else address) as executor:
        gpus = f" and {plural(int(executor.gpus), 'GPU')}" if executor.gpus else ""
        nodes, cpus = plural(executor.nodes, "node"), plural(executor.count, "CPU")
        console.print(f"Ray cluster: {nodes} with {cpus}{gpus}", highlight=False)
        yield executor
