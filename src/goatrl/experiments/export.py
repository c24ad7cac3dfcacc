"""Exports one agent of a run or of a benchmark, with a card that says what it is."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from goatrl import algorithms, tasks
from goatrl.data import minari
from goatrl.data.cache import checksums
from goatrl.data.problems import open_problem
from goatrl.disk.files import write_atomically, write_text
from goatrl.experiments import agents as benchmark
from goatrl.experiments import records
from goatrl.experiments.loading import load
from goatrl.experiments.statistics import Block, Scores, average, episode_noise, interval
from goatrl.learn.normalize import CLIP
from goatrl.learn.parameters import described
from goatrl.runs.export import CHECKED, SUFFIXES, Exported, check_format, export
from goatrl.runs.folder import Agents, RunFolder
from goatrl.runs.numpy_policy import FIRST_LINE
from goatrl.types import GoatError, Settings


@dataclasses.dataclass(frozen=True)
class ExportedPolicy:
    """What was written, and how it was found to act."""

    path: Path
    card: Path
    difference: float
    checked_with: str
    unfinished: str  # where training stopped, if it did so before its end


def export_policy(
    run: Path | str,
    path: Path | str,
    seed: int = 0,
    format: str = "onnx",
    *,
    algorithm: Path | str | None = None,
) -> ExportedPolicy:
    """Write one trained agent as a file that needs neither JAX nor goatrl, and a card beside it.

    Before anything is written, the exported policy acts on 10,000 random inputs, of which half are
    far out. If its actions are not those of the agent in JAX, this is an error.

    Args:
        run: the folder of a run, or a file of agents saved by `goat bench`.
        path: the file to write: .onnx, or .py for NumPy. Its card is the same with .md appended.
        seed: the seed of the agent.
        format: "onnx", a graph with the inputs `observation` and `goal` and the output `action`; or
            "numpy", a Python module with the function act(observation, goal) that imports NumPy
            alone.
        algorithm: the Python file of your own algorithm, if it was trained with one. The file is
            executed; nothing in a run's folder ever is.

    Returns:
        The `path` of the policy, that of its `card`, the largest `difference` from JAX, what it was
        `checked_with`, and where training stopped if it is `unfinished`.
    """
    path = Path(path)
    _check_path(path, format)
    agents = load(run, algorithm=algorithm)
    made = export(agents, seed, format)
    card = path.with_name(f"{path.name}.md")
    text = "\n".join(_card(agents, seed, made, path.name))
    write_atomically(path, lambda file: file.write(made.content))
    write_text(card, text)
    return ExportedPolicy(path, card, made.difference, made.checked_with, agents.unfinished)


def default_path(run: Path, seed: int, format: str) -> Path:
    """In a run's folder, or beside a file of agents."""
    check_format(format)
    name = f"policy_seed_{seed}{SUFFIXES[format]}"
    return run.with_name(f"{run.stem}--{name}") if run.is_file() else run / name


def _check_path(path: Path, format: str) -> None:
    check_format(format)
    if path.suffix != SUFFIXES[format]:
        fitting = next((name for name, suffix in SUFFIXES.items() if suffix == path.suffix), None)
        hint = f" (or use the format {fitting})" if fitting else ""
        raise GoatError(
            f"cannot write {path.name}: name a file that ends in {SUFFIXES[format]}{hint}"
        )
    if path.suffix == ".py" and path.exists():
        with path.open("rb") as file:
            ours = file.read(len(FIRST_LINE)) == FIRST_LINE.encode()
        if not ours:
            raise GoatError(f"{path} is not a policy of goatrl; choose another name")


def _card(agents: Agents, seed: int, made: Exported, name: str) -> Iterator[str]:
    about, spec = _about(agents), agents.spec
    revisions = ", ".join(
        f"`{algorithm}` revision {number}" for algorithm, number in about["revisions"].items()
    )
    yield f"# Agent card: {_line(agents.label)}, seed {seed}\n"
    yield "| | |\n|---|---|"
    yield f"| file | `{name}` |"
    yield f"| SHA-256 | `{hashlib.sha256(made.content).hexdigest()}` |"
    yield f"| algorithm | {_line(agents.label)} ({_line(revisions)}) |"
    if source := (about if "checksum" in about else _origin(about)).get("source"):
        yield f"| its file | SHA-256 `{_line(source)}` |"
    stopped = f" ({_line(agents.unfinished)})" if agents.unfinished else ""
    yield f"| updates | {agents.step:,}{stopped} |"
    yield f"| exported by | goatrl {made.about['goatrl']} |"
    yield (
        f"| check | largest difference from JAX on {CHECKED:,} random inputs: "
        f"{made.difference:.1e} ({made.checked_with}) |"
    )
    yield "\n## Inputs and output\n"
    yield "| | numbers | |\n|---|---:|---|"
    yield f"| `observation` | {spec.observation_dim} | as in the data, not normalised |"
    yield f"| `goal` | {spec.goal_dim} | as in the data, not normalised |"
    bounds = agents.action_bounds or "[-1, 1]"
    yield f"| `action` | {spec.action_dim} | as in the data, within {bounds} |\n"
    yield (
        "Order and units are those of the training data; the file does not know them. It "
        f"normalises its inputs and clips them at {CLIP:g} standard deviations of the data."
    )
    yield "\n## Training data\n"
    yield from _data(about, spec.horizon, spec.goal_threshold)
    yield "\n## Settings that differ from the defaults\n"
    yield from _settings(about)
    yield "\n## Measured success\n"
    yield from _measured(agents, seed)
    yield "\n## Intended use and limits\n"
    yield (
        "- It is meant for the robot or simulator that the data was recorded on, with goals like "
        "those above. Elsewhere, measure it first.\n"
        "- It always returns an action, also where the data never was. Its actions mean little "
        "there.\n"
        "- It knows no safety limits. Whoever runs it limits speeds, forces and workspace, and "
        "stops it if an input is missing or not a number.\n"
        "- It has no memory, and does not learn while it runs.\n"
    )


def _about(agents: Agents) -> Mapping[str, Any]:
    """All that decided these agents, as it was recorded."""
    if agents.path.is_file():
        return benchmark.config_of(agents.path).identity.about
    return RunFolder(agents.path).about()


def _origin(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """Which agents were fine-tuned; nothing if these were not, or began at random."""
    origin = about.get("from")
    return origin if isinstance(origin, Mapping) else {}


def _data(about: Mapping[str, Any], horizon: int, threshold: float) -> Iterator[str]:
    origin = _origin(about)
    if "checksum" in about:
        group, data, checksum = about["group"], about.get("data"), about["checksum"]
    else:
        group, data, checksum = origin.get("group"), None, origin.get("data")
    if checksum is None:
        yield "None: it learned online, in simulation."
    else:
        count = _count(group, data, checksum, threshold)
        yield "| | |\n|---|---|"
        sure = count is not None or "data" in about  # not all records say where the data lay
        source = f"{_source(group, data)}{'' if sure else ', or a file in its place'}"
        yield f"| source | {_line(source)} |"
        yield f"| SHA-256 of its arrays | `{_line(checksum)}` |"
        yield f"| episodes | {'unknown: the data is not here' if count is None else f'{count:,}'} |"
        yield f"| steps of an episode | {horizon} |"
        yield f"| a goal is reached within | {threshold:g} |"
    if "by" in about:
        how = "its own algorithm" if about["by"] == "own" else f"`{_line(about['by'])}`"
        yield (
            f"\nFine-tuned online by {how} {_where(about)}, "
            f"{about['episodes']:,} episodes for each seed."
        )


def _where(about: Mapping[str, Any]) -> str:
    if about["group"] is None:
        return f"in `{_line(about['environment']['id'])}`"
    return f"on the tasks of `{_line(about['group'])}`"


def _source(group: str | None, data: str | None) -> str:
    if data is not None:
        return f"`{data if minari.is_id(data) else Path(data).name}`"
    return "a dataset of the user's own" if group is None else f"task group `{group}`"


def _count(group: str | None, data: str | None, checksum: str, threshold: float) -> int | None:
    """The number of episodes, if the dataset is known or still here."""
    known = tasks.groups().get(group or "")
    if known is not None and known.made and checksums().get(known.name) == checksum:
        return known.made.episodes
    try:
        episodes = open_problem(group, None if data is None else Path(data), threshold).recorded
    except GoatError:
        return None
    return episodes.count if episodes.checksum() == checksum else None


def _settings(about: Mapping[str, Any]) -> Iterator[str]:
    usual = _usual(about)
    own = {
        name: value
        for name, value in about["hyperparameters"].items()
        if (value != usual[name] if name in usual else name not in about["defaults"])
    }
    if not own:
        yield "None."
        return
    yield "| setting | value |\n|---|---|"
    for name, value in own.items():
        shown = value if isinstance(value, str) else json.dumps(value)
        yield f"| `{_line(name)}` | `{_line(shown)}` |"


def _usual(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of the algorithm where nothing is said, if it is known here."""
    known = algorithms.entries().keys() & about["revisions"].keys()
    if len(known) != 1:
        return {}
    usual: Mapping[str, Any] = described(algorithms.get(*known).build(Settings()))
    return dict(usual["hyperparameters"])


def _measured(agents: Agents, seed: int) -> Iterator[str]:
    table = _episodes(agents)
    if table is None or seed not in table.column("seed").to_pylist():
        yield "Not measured: `goat evaluate` measures it, and a card of a later export shows it."
        return
    names, seeds, success = (
        np.asarray(table.column(name).to_pylist()) for name in ("task", "seed", "success")
    )
    splits = dict(zip(names.tolist(), table.column("split").to_pylist(), strict=True))
    every = tuple(dict.fromkeys(seeds.tolist()))
    many = len(every) > 1
    yield "| task | split | episodes | this agent |" + (" all seeds |" if many else "")
    yield "|---|---|---:|---:|" + ("---:|" if many else "")
    for task, split in splits.items():
        values = np.stack([success[(names == task) & (seeds == each)] for each in every])
        mine = values.astype(float)[[every.index(seed)]]
        noise = episode_noise(_scores(task, (seed,), mine))
        line = f"| {_line(task)} | {split or ''} | {mine.size} | {mine.mean():.2f} ± {noise:.2f} |"
        if many:
            sure = interval(_scores(task, every, values.astype(float)), average)
            line += f" {sure.value:.2f} [{sure.low:.2f}, {sure.high:.2f}] |"
        yield line
    yield "\nSuccess is the share of episodes within the goal threshold at the final step."
    yield "This agent: ± the standard error over its episodes." + (
        f" All {len(every)} seeds: their mean and its 95 % bootstrap interval over seeds."
        if many
        else ""
    )


def _scores(task: str, seeds: tuple[int, ...], values: np.ndarray) -> Scores:
    return Scores("", (Block("", seeds, {task: values}),))


def _episodes(agents: Agents) -> pa.Table | None:
    """The evaluated episodes of these agents as they are now, on tasks or in an environment."""
    if agents.path.is_file():
        config = benchmark.config_of(agents.path)
        cell = records.read(agents.path.absolute().parent.parent, config)
        if cell is None:
            return None
        shown = [task.name for task in tasks.get(config.group).tasks]  # maps of coverage are not
        return cell.episodes.filter(np.isin(cell.column("task"), shown))
    run = RunFolder(agents.path)
    if not run.episodes_path.exists():
        return None
    table, about = run.read_episodes()
    return table if about.get("step") == agents.step else None


def _line(text: str) -> str:
    """What others wrote, within one line and one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
