"""Small cells of the suite on PointReach, for tests of planning and running them."""

from __future__ import annotations

from pathlib import Path

from goatrl.experiments import planning, suites

SUITE = suites.get("pointreach")
GROUP = "pointreach-expert-10"


def plan(folder: Path, *names: str, seeds: int = 2, updates: int = 8) -> list[planning.PlannedCell]:
    return planning.plan(
        SUITE, folder, seeds=seeds, groups=[GROUP], algorithm_names=names, updates=updates
    )


def forbidden(*arguments: object, **named: object) -> None:
    raise AssertionError("nothing is left to train")
