"""goat expert"""

import dataclasses
from pathlib import Path
from typing import Annotated

from rich.table import Table
from tyro.conf import Positional, arg

from goatrl import tasks
from goatrl.cli.console import command, console
from goatrl.cli.online import follow
from goatrl.data import experts
from goatrl.runs import expert_training
from goatrl.runs.online import OnlineRun


@dataclasses.dataclass(frozen=True)
class ExpertTrain:
    """Train an expert for a robot online, in the same way as the experts that ship with goatrl. To
    resume an interrupted run, rerun the same command.

    Example:
      goat expert train push --out runs/push-expert
    """

    robot: Annotated[Positional[str], arg(metavar="ROBOT")]
    """reach, push, pick, slide or hand."""
    out: Path
    """The run's folder, where the policy and its card are written at the end."""
    seed: int = 0
    """The random seed."""
    rounds: Annotated[int | None, arg(metavar="N")] = None
    """Number of rounds of 128 episodes each; the robot's if omitted."""

    def run(self) -> None:
        plan = expert_training.plan(self.robot, self.seed, self.rounds)
        run = OnlineRun(self.out)
        follow(run, plan, f"{self.robot} expert")
        card = expert_training.export(run, plan, self.out)
        console.print(
            f"success in {card['episodes']} episodes: {100 * card['success']:.1f} % (agent from "
            f"round {card['round']})"
        )
        console.print(f"wrote {self.out}/{self.robot}.safetensors and {self.robot}.json")


@dataclasses.dataclass(frozen=True)
class ExpertList:
    """List the experts that ship with goatrl."""

    def run(self) -> None:
        table = Table(title="Experts", title_justify="left")
        for heading in (
            "robot",
            "success without noise",
            "environment steps",
            "algorithm",
            "trained with",
        ):
            table.add_column(heading)
        for family in tasks.families().values():
            if family.expert is None:
                continue
            card = experts.get(family).card
            success = f"{100 * card['success']:.1f} % of {card['episodes']}"
            table.add_row(
                family.name,
                success,
                f"{card['steps']:,}",
                card["algorithm"],
                f"jax {card['versions']['jax']}",
            )
        console.print(table)


Expert = (
    Annotated[ExpertTrain, command("train", ExpertTrain)]
    | Annotated[ExpertList, command("list", ExpertList)]
)
