"""Whether two folders of records differ, task by task: Welch's test over seeds.

    python benchmarks/precision.py results/half-precision/single results/half-precision/half

By default the agents of `results/half-precision`: passes without gradient in single precision, and
in half precision by the fused kernel.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import stats

from goatrl import tasks
from goatrl.experiments import records

HOME = Path(__file__).parents[1] / "results/half-precision"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folders", nargs="*", type=Path, default=[HOME / "single", HOME / "half"], metavar="FOLDER"
    )
    first, second = (
        {(cell.config.group, cell.label): cell for cell in records.read_all(folder)}
        for folder in parser.parse_args(arguments).folders
    )
    print(f"{'':38}{'':>5}{'first':>14}{'second':>14}   difference [95 %]        p")
    unseen = []  # for each cell: how many tasks, and their average for each seed, before and after
    for place in sorted(first.keys() & second.keys()):
        compared = []
        for task in tasks.get(place[0]).tasks:
            a, b = (100 * each[place].per_seed("success", task.name) for each in (first, second))
            if task.split == "ood":
                compared.append((a, b))
            if 0 in (np.ptp(a), np.ptp(b)):
                continue  # all seeds always succeed: no spread to compare with
            test = stats.ttest_ind(b, a, equal_var=False)
            low, high = test.confidence_interval()
            print(
                f"{place[0]:16}{place[1]:11}{task.name:11}{task.split:>5}"
                f"{a.mean():8.1f} ± {a.std(ddof=1):4.1f}{b.mean():8.1f} ± {b.std(ddof=1):4.1f}"
                f"   {b.mean() - a.mean():+5.1f} [{low:+5.1f}, {high:+5.1f}]   {test.pvalue:.2f}"
            )
        before, after = (np.mean(each, axis=0) for each in zip(*compared, strict=True))
        unseen.append((len(compared), before, after))
    count = sum(tasks for tasks, _, _ in unseen)
    means = [sum(n * np.mean(pair[which]) for n, *pair in unseen) / count for which in (0, 1)]
    difference, low, high, p = welch(
        [
            ((n / count) * (2 * which - 1), each)
            for n, *pair in unseen
            for which, each in enumerate(pair)
        ]
    )
    print(
        f"all {count} unseen tasks: {means[0]:.1f} and {means[1]:.1f}, difference "
        f"{difference:+.1f} [{low:+.1f}, {high:+.1f}], p {p:.2f}"
    )


def welch(parts: Sequence[tuple[float, np.ndarray]]) -> tuple[float, float, float, float]:
    """A weighted sum of the means of independent samples, its 95 % interval and the p of zero, by
    Welch and Satterthwaite: samples of any sizes and spreads.
    """
    value = sum(weight * np.mean(sample) for weight, sample in parts)
    errors = [weight**2 * np.var(sample, ddof=1) / len(sample) for weight, sample in parts]
    freedom = sum(errors) ** 2 / sum(
        error**2 / (len(sample) - 1) for error, (_, sample) in zip(errors, parts, strict=True)
    )
    error = np.sqrt(sum(errors))
    reach = stats.t.ppf(0.975, freedom) * error
    return value, value - reach, value + reach, 2 * stats.t.sf(abs(value) / error, freedom)


if __name__ == "__main__":
    main()
