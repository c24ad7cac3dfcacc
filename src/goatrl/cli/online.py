"""Shared by the commands that train online."""

from goatrl.cli.console import console, progress_bar
from goatrl.runs.online import OnlinePlan, OnlineRun


def follow(run: OnlineRun, plan: OnlinePlan, title: str) -> None:
    """Train to the end, or resume and train to the end, and show progress."""
    run.prepare(plan)
    if run.rounds():
        console.print(f"resuming from round {run.rounds()} of {plan.rounds}")
    with progress_bar() as progress:
        bar = progress.add_task(
            title, total=plan.rounds, completed=run.rounds(), losses="compiling"
        )
        shown: dict[str, float] = {}
        for report in run.train(plan):
            latest = {"exploring": report.explored, "without noise": report.evaluated}
            shown |= {name: success for name, success in latest.items() if success is not None}
            progress.update(
                bar,
                completed=report.round,
                losses=", ".join(f"{name} {100 * shown[name]:.0f} %" for name in shown),
            )
