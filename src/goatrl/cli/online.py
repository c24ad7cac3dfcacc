"""Shared by the commands that train online."""

from collections.abc import Mapping, Sequence

from goatrl.cli.console import console
from goatrl.cli.progress import training_bar
from goatrl.runs import trackers
from goatrl.runs.online import OnlinePlan, OnlineRun

SHARES = {"explored": "exploring", "success": "without noise"}


def follow(run: OnlineRun, plan: OnlinePlan, title: str, log: Sequence[trackers.Kind] = ()) -> None:
    """Train to the end, or resume and train to the end, and show progress."""
    run.prepare(plan)
    if run.rounds():
        console.print(f"resuming from round {run.rounds()} of {plan.rounds}")
    latest: dict[str, float] = {}

    def shares(metrics: Mapping[str, float]) -> str:
        latest.update({name: metrics[name] for name in SHARES if name in metrics})
        return ", ".join(f"{SHARES[name]} {100 * value:.0f} %" for name, value in latest.items())

    with (
        trackers.opened(log, run.folder, plan.about["hyperparameters"]) as listeners,
        training_bar(title, run.rounds(), plan.rounds, listeners, shares, "rounds") as show,
    ):
        for report in run.train(plan):
            success = {"explored": report.explored, "success": report.evaluated}
            measured = {name: value for name, value in success.items() if value is not None}
            show(report.round, {**report.losses, **measured})
