"""goat export"""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from goatrl.cli.console import OwnAlgorithm, console
from goatrl.experiments.export import default_path, export_policy
from goatrl.runs.export import CHECKED


@dataclasses.dataclass(frozen=True)
class Export:
    """Write one trained agent as a file that needs neither JAX nor goatrl, and a card beside it
    that says what it is.

    The file takes observations and goals as they are in the data, and returns actions. Before it is
    written, its actions are compared with those of the agent in JAX on 10,000 random inputs; a
    difference is an error.

    Examples:
      goat export runs/goat
      goat export runs/goat --seed 3 --out policy.onnx
      goat export runs/goat --format numpy --out policy.py
      goat export agents/….safetensors --format numpy --out policy.py
      goat export runs/my --algorithm my_algorithm.py
    """

    # `run` is also what every command does, hence the other name here.
    trained: Annotated[Positional[Path], arg(metavar="RUN")]
    """The folder of a `goat train`, `goat finetune` or `goat expert train` run, or a file of agents
    from `goat bench`.
    """
    seed: int = 0
    """The seed of the agent."""
    format: Literal["onnx", "numpy"] = "onnx"
    """An ONNX graph, or a Python module that imports NumPy alone."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """The file to write (.onnx, or .py for NumPy); policy_seed_SEED in the run's folder if
    omitted.
    """
    algorithm: OwnAlgorithm = None

    def run(self) -> None:
        out = self.out or default_path(self.trained, self.seed, self.format)
        made = export_policy(self.trained, out, self.seed, self.format, algorithm=self.algorithm)
        if made.unfinished:
            console.print(f"{self.trained} {made.unfinished}")
        console.print(
            f"largest difference from JAX on {CHECKED:,} random inputs: {made.difference:.1e} "
            f"({made.checked_with})",
            highlight=False,
        )
        console.print(f"wrote {made.path}")
        console.print(f"wrote {made.card}")
