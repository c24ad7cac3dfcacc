"""Tables of training times, and what the page shows of them."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.markup import escape
from rich.table import Table

from goatrl.experiments import timing
from goatrl.experiments.claims import Verdict
from goatrl.experiments.experiment import Experiment, Planned
from goatrl.experiments.timing import Timing
from goatrl.report.presentation import Json, Published
from goatrl.report.shared import as_typed, claims, experiment_name, merged_versions, page_part
from goatrl.report.text import Csv, in_markdown

BASE = "BC"  # of whose time the others' are multiples


def heading(found: Sequence[Timing]) -> str:
    """What the times are of."""
    config, devices = found[0].config, sorted({each.versions["device"] for each in found})
    seeds = "1 seed" if config.seeds == 1 else f"{config.seeds} seeds at once"
    return (
        f"{config.updates:,} updates of {seeds}, batch {config.batch_size}, on {', '.join(devices)}"
    )


def _ratio(found: Sequence[Timing], each: Timing) -> float | None:
    base = next((other.seconds for other in found if other.label == BASE), None)
    return None if base is None else each.seconds / base


def _texts(found: Sequence[Timing], each: Timing) -> list[str]:
    ratio, (low, high) = _ratio(found, each), each.span
    return [
        f"{each.seconds:.1f}",
        f"{low:.1f}–{high:.1f}",
        "–" if ratio is None else f"{ratio:.2f}",
    ]


HEADINGS = ("seconds", "by chunk", f"× {BASE}")


def terminal(found: Sequence[Timing]) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    drawn.add_column("", no_wrap=True)
    for name in HEADINGS:
        drawn.add_column(name, justify="right", no_wrap=True)
    for each in found:
        drawn.add_row(escape(each.label), *_texts(found, each))
    return drawn


def markdown(found: Sequence[Timing], verdicts: Sequence[Verdict]) -> str:
    lines = [
        f"# {timing.NAME}\n\n{timing.SUMMARY}\n\nSeconds for {heading(found)}, "
        "without compilation: the median by "
        f"{timing.CHUNKS} chunks of {found[0].interval} updates.\n",
        f"| | {' | '.join(HEADINGS)} |\n|---|{'---:|' * len(HEADINGS)}",
        *(f"| {in_markdown(each.label)} | {' | '.join(_texts(found, each))} |" for each in found),
    ]
    return "\n".join([*lines, "", claims(verdicts)])


def to_csv(found: Sequence[Timing]) -> str:
    buffer = io.StringIO()
    writer = Csv(buffer)
    writer.writerow(["label", "algorithm", "device", "seeds", "updates", "seconds", "low", "high"])
    for each in found:
        config, numbers = each.config, [f"{value:.3f}" for value in (each.seconds, *each.span)]
        writer.writerow(
            [
                each.label,
                config.algorithm,
                each.versions["device"],
                config.seeds,
                config.updates,
                *numbers,
            ]
        )
    return buffer.getvalue()


def publish(experiment: Experiment, folder: Path, planned: Sequence[Planned]) -> Published | None:
    found = experiment.read(folder)
    if not found:
        return None
    verdicts, name = experiment.claims(found), experiment.name
    files = {f"{name}.md": markdown(found, verdicts), f"{name}.csv": to_csv(found)}
    shown = (f"\n[bold]{name}[/bold]: {heading(found)}\n", terminal(found))
    return Published(shown, files, verdicts)


# The page

script = page_part("timing.js")


def sections(folders: Sequence[Path]) -> list[Json]:
    """The times of each folder that has any."""
    recorded = [(folder, timing.read_all(folder)) for folder in folders]
    return [describe(folder, found) for folder, found in recorded if found]


def describe(folder: Path, found: Sequence[Timing]) -> Json:
    """All that the page shows of the times in a folder."""
    made_with = merged_versions(each.versions for each in found)
    return {
        "kind": "timing",
        "name": experiment_name(folder, timing.NAME),
        "suite": timing.NAME,
        "about": timing.SUMMARY,
        "of": heading(found),
        "base": BASE,
        "episodes": 0,
        "algorithms": [each.label for each in found],
        "rows": [_row(found, each) for each in found],
        "groups": [],
        "verdicts": [dataclasses.asdict(verdict) for verdict in timing.check(found)],
        "reproduction": {"command": command(found), "datasets": [], "versions": made_with},
    }


def _row(found: Sequence[Timing], each: Timing) -> Json:
    low, high = each.span
    numbers = {"value": each.seconds, "low": low, "high": high, "ratio": _ratio(found, each)}
    return {
        "label": each.label,
        **{name: None if value is None else round(value, 2) for name, value in numbers.items()},
    }


def command(found: Sequence[Timing]) -> str:
    config, words = found[0].config, ["goat", "bench", timing.NAME]
    if [each.label for each in found] != [column.label for column in timing.COLUMNS]:
        chosen = (each.config for each in found)
        words += ["--algorithms", *(as_typed(each.algorithm, each.source) for each in chosen)]
    words += ["--seeds", str(config.seeds)]
    if config.updates != timing.GROUP.settings.updates:
        words += ["--updates", str(config.updates)]
    return " ".join(words)
