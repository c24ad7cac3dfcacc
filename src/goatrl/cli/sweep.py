"""goat sweep"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from tyro.conf import UseAppendAction, arg

from goatrl.cli.compare import show_comparison
from goatrl.cli.console import console, plural
from goatrl.cli.environments import (
    EnvironmentArgs,
    Horizon,
    SuccessRule,
    Timeout,
    environment_of,
)
from goatrl.cli.progress import training_bar
from goatrl.cli.training import (
    TrainingOptions,
    check_place,
    evaluate_agents,
    note_actions,
    note_symmetry,
    own_option,
)
from goatrl.data.problems import Problem
from goatrl.disk.claims import claimed
from goatrl.evaluation import environments
from goatrl.evaluation.worlds import Environment
from goatrl.runs import sweep
from goatrl.runs.offline import Configured, Run, programs, train_together
from goatrl.tasks import TaskGroup
from goatrl.training.offline import Diverged
from goatrl.types import GoatError


@dataclasses.dataclass(frozen=True)
class Sweep(TrainingOptions):
    """Train all combinations of some hyper-parameters, evaluate and compare them. Each becomes a
    run in a subfolder of OUT, like one of `goat train`.

    Combinations that differ in nothing but floats share a compiled program, and on a GPU train side
    by side. To resume after Ctrl-C, rerun the same command; what is finished is not trained or
    evaluated again.

    Examples:
      goat sweep goat --group pointreach-non-expert-10 --set uncertainty.w=0.5,1,2 --out runs/w
      goat sweep goat --group push-left-right --set discount=0.9,0.98 --set q_ensemble.size=2,5
        --out runs/push
      goat sweep wgcsl --data mine.npz --goal-threshold 0.5 --environment mine:World-v0
        --set "architecture.hidden=[64,64],[256,256,256]" --out runs/sizes
    """

    out: Path
    """The folder for all runs."""
    set: UseAppendAction[tuple[str, ...]] = ()
    """NAME=A,B,C: the values of a hyper-parameter (see `goat list ALGORITHM`). A list is written in
    brackets. Can be repeated; all combinations are trained.
    """
    seeds: int = 3
    """Number of seeds (0, 1, …) of each combination."""
    environment: Annotated[str | None, arg(metavar="ID")] = None
    """Evaluate in this Gymnasium environment, as for `goat evaluate`, instead of on the group's
    tasks.
    """
    environment_args: EnvironmentArgs = None
    horizon: Horizon = None
    success: SuccessRule = "threshold"
    timeout: Timeout = None
    episodes: Annotated[int | None, arg(metavar="N")] = None
    """Number of episodes in the environment; 100 if omitted."""

    def run(self) -> None:
        environment = environment_of(
            self.environment, self.environment_args, self.horizon, self.success, self.timeout
        )
        entry, problem = self.open()
        settings = sweep.combinations(self.settings())
        configs = [self.configure(entry, problem, each) for each in settings]
        names = sweep.names(configs, settings)
        where = problem.group if environment is None else environment
        if where is not None:
            check_place(where, problem.spec, self.episodes, problem.action_bounds)
        elif self.episodes is not None:
            raise GoatError("--episodes is the number of episodes in an --environment; add one")
        runs = [(Run(self.out / name), config) for name, config in zip(names, configs, strict=True)]
        with claimed(self.out):
            failures = self._train(runs, problem, where)
        trained = [run.folder for run, config in runs if run.step() == config.updates]
        if where is None:
            console.print(
                f"evaluate them in your environment: goat evaluate RUN{own_option(entry)} "
                f"--environment ID, then compare them: goat compare {self.out}/*",
                highlight=False,
            )
        elif trained:
            show_comparison(trained)
        if failures:
            raise Diverged("; ".join(failures))

    def _train(
        self,
        runs: Sequence[Configured],
        problem: Problem,
        where: TaskGroup | Environment | None,
    ) -> list[str]:
        """Train and evaluate what is missing. Returns what diverged."""
        for run, config in runs:
            run.prepare(config)
        note_actions(problem)
        note_symmetry(self.symmetry, self.data or self.group)
        planned = programs(runs, problem)
        finished = len(runs) - sum(map(len, planned))
        if finished:
            console.print(f"already trained: {finished} of {plural(len(runs), 'run')}")
        failures = []
        for place, together in enumerate(planned, start=1):
            step, updates = together[0][0].step(), together[0][1].updates
            if step:
                console.print(
                    f"resuming {plural(len(together), 'run')} from update {step} of {updates}"
                )
            what = together[0][0].folder.name if len(together) == 1 else f"{len(together)} runs"
            title = f"{what}, {plural(self.seeds, 'seed')} ({place} of {len(planned)})"
            try:
                with training_bar(title, step, updates) as report:
                    train_together(together, problem, report)
            except Diverged as error:
                failures.append(str(error))
            self._evaluate(together, where)
        self._evaluate(runs, where)  # what an earlier call has trained, too
        return failures

    def _evaluate(self, runs: Sequence[Configured], where: TaskGroup | Environment | None) -> None:
        """What is trained to its end, unless it is evaluated."""
        if where is None:
            return
        count = environments.EPISODES if self.episodes is None else self.episodes
        for run, config in runs:
            if run.step() == config.updates and not run.is_evaluated(where, count):
                evaluate_agents(run.agents(), where, episodes=self.episodes)
