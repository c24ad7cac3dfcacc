"""Files from strangers, and faults around them: honest numbers, one line, nothing harmed."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from goatrl import cli, tasks
from goatrl.disk import checkpoint, checksum
from goatrl.disk.claims import claimed
from goatrl.disk.files import make_folder, write_text
from goatrl.disk.reading import typed, unusable
from goatrl.evaluation import episodes
from goatrl.experiments import records
from goatrl.report import tables
from goatrl.report.shared import is_media
from goatrl.report.text import in_csv, in_markdown
from goatrl.runs.offline import Run
from goatrl.types import GoatError, Spec, TrainState, pytree
from helpers import acting, error_line, goat, made_by_hand, made_run, own_algorithms, point_episodes

GROUP = "pointreach-expert-10"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def evaluated(folder: str = "run") -> Run:
    return made_run(Path(folder), point_episodes({"R10": [[1, 0]], "R20": [[0, 0]]}))


# Standard output


def told(*words: str, into: str) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own, with its output going elsewhere."""
    command = f"import sys; from goatrl.cli import main; sys.exit(main({list(words)!r}))"
    line = f'"{sys.executable}" -c "{command}" {into}'
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"], capture_output=True, text=True
    )


def test_a_full_disk_under_the_output_and_a_closed_pipe() -> None:
    full = told("list", into="> /dev/full")
    assert full.stderr == "goat: cannot write to the standard output: No space left on device\n"
    assert full.returncode == 1
    closed = told("list", into="| true")
    assert (closed.returncode, closed.stderr) == (141, ""), "what did not end is no success"
    none = told("lists", into=">&-")
    assert none.returncode == 2
    assert none.stderr.startswith("goat: ")
    assert "Traceback" not in none.stderr


def test_names_that_are_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    name = "[b]$x_{\udcff.npz"
    assert goat("data", "convert", GROUP, "--out", name) == 0
    assert "wrote [b]$x_{\\udcff.npz: 10 episodes" in capsys.readouterr().out
    assert goat("data", "info", name, "--figure", "f.svg") == 0
    assert "$x_{\\udcff" in Path("f.svg").read_text()
    assert goat("data", "info", "x" * 300 + ".npz") == 2
    assert error_line(capsys).endswith("File name too long")


# Numbers on the command line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "bc", "--seeds", 10**30], "--seeds must be at most 1,000, not 1"),
        (["train", "bc", "--batch-size", 2**31], "--batch-size must be at most 1,000,000, not 2"),
        (["train", "bc", "--updates", 2**31], "--updates must be at most 2,147,483,647, not 2"),
        (["data", "make", GROUP, "--seed", -1], "--seed must be at least 0, not -1"),
        (["data", "make", GROUP, "--threads", 0], "--threads must be at least 1, not 0"),
    ],
)
def test_numbers_have_limits(
    words: list[object], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert goat(*words, "--out", "o.npz") == 2
    assert message in error_line(capsys)
    assert not list(Path().iterdir())


# Where files are written


def test_a_link_stays_a_link_and_gets_the_file() -> None:
    Path("kept").mkdir()
    Path("link").symlink_to("kept/file")
    write_text(Path("link"), "new")
    assert Path("link").is_symlink()
    assert Path("kept/file").read_text() == "new"


def test_what_is_no_file_is_not_replaced() -> None:
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("socket")
        for name in ("pipe", "link", "socket", "/dev/full", "/dev/null"):
            with pytest.raises(GoatError, match="it is a device or a pipe; name a file"):
                write_text(Path(name), "new")
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_a_folder_is_made_where_a_link_leads_and_nowhere_else() -> None:
    Path("link").symlink_to("kept/deep")
    make_folder(Path("link"))
    assert Path("kept/deep").is_dir()
    assert Path("link").is_symlink()
    Path("file").touch()
    Path("loop").symlink_to("loop")
    for name in ("file", "loop", "/dev/null"):
        with pytest.raises(GoatError, match=f"{name} is not a folder; choose another place"):
            make_folder(Path(name))
    with pytest.raises(FileNotFoundError):
        make_folder(Path("/proc/self/new"))


def test_a_name_that_is_no_text_may_be_mentioned_in_one() -> None:
    write_text(Path("card.md"), "policy \udcff.py")
    assert Path("card.md").read_text() == "policy \\udcff.py"


# What cannot be read


def test_unreadable_is_not_damaged() -> None:
    denied = PermissionError(13, "Permission denied")
    message = str(unusable(Path("file"), denied, "file is damaged; delete it"))
    assert message == (
        "cannot read file: Permission denied; nothing is known to be wrong with its content"
    )
    # As libraries say that a file is not what they read.
    broken = OSError("Couldn't deserialize thrift")
    assert str(unusable(Path("file"), broken, "file is damaged")) == "file is damaged"


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("run/config.json", ["compare", "run", "run"]),
        ("run/episodes.parquet", ["compare", "run", "run"]),
        ("records/a.parquet", ["report", "records"]),
        *((f"data.{kind}", ["data", "info", f"data.{kind}"]) for kind in ("npz", "parquet", "h5")),
    ],
)
def test_nobody_is_told_to_delete_what_merely_lacks_permission(
    file: str,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    evaluated()
    Path("records").mkdir()
    records.write(Path("records/a.parquet"), made_by_hand(GROUP, [], ()))
    for kind in ("npz", "parquet", "h5"):
        Path(f"data.{kind}").write_bytes(b"x")
    opened = io.open

    def denied(name: object, *rest: object, **more: object) -> object:
        if str(name) == file:  # whoever runs the tests may read everything
            raise PermissionError(13, "Permission denied", file)
        return opened(name, *rest, **more)

    monkeypatch.setattr(io, "open", denied)
    assert goat(*words) == 2
    line = error_line(capsys)
    assert f"cannot read {file}: Permission denied" in line
    assert "delete" not in line
    assert "damaged" not in line


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": "01"}, "Expected 'array', got 'str' - at '$.seeds'"),
        ({"seeds": [10**30]}, "seeds must be between"),
        ({"updates": "many"}, "Expected 'int', got 'str' - at '$.updates'"),
        ({"spec": {"horizon": 0}}, "missing required field"),
        ({"hyperparameters": None}, "Expected 'object', got 'null' - at '$.hyperparameters'"),
        ({"stranger": 1}, "unknown field 'stranger'"),
    ],
)
def test_wrong_types_in_a_config_are_named(
    change: dict[str, object], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = evaluated()
    stored = json.loads(run.config_path.read_text())
    run.config_path.write_text(json.dumps({**stored, "config": {**stored["config"], **change}}))
    assert goat("compare", "run", "run") == 2
    assert message in error_line(capsys)


@pytest.mark.parametrize("text", ["[" * 100_000, "null", "[]", '{"config": 1}', "{"])
def test_a_config_that_is_none(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    evaluated().config_path.write_text(text)
    assert goat("evaluate", "run") == 2
    assert "run/config.json is damaged or not a run's config" in error_line(capsys)


def test_a_config_that_would_fill_the_memory(capsys: pytest.CaptureFixture[str]) -> None:
    os.truncate(evaluated().config_path, 2**33)
    assert goat("evaluate", "run") == 2
    assert "it has 8,192 MiB, at most 64 are read" in error_line(capsys)


def test_no_terminal_obeys_what_a_file_says(capsys: pytest.CaptureFixture[str]) -> None:
    run = evaluated()
    stored = json.loads(run.config_path.read_text())
    name = "\x1b]0;own\x07\n[red]" + "x" * 10_000
    stored["config"] |= {"algorithm": name, "source": ""}
    run.config_path.write_text(json.dumps(stored))
    assert goat("evaluate", "run") == 2
    line = error_line(capsys)
    assert "?]0;own? [red]xx" in line
    assert len(line) < 2_100


def test_a_run_that_trains_has_no_checkpoint_yet(capsys: pytest.CaptureFixture[str]) -> None:
    run = evaluated()
    run.checkpoint_path.unlink(missing_ok=True)
    assert goat("evaluate", "run") == 2
    assert "it stopped before its first save; rerun its command" in error_line(capsys)
    with claimed(Path("run")):
        assert goat("evaluate", "run") == 2
        assert f"process {os.getpid()} on " in (line := error_line(capsys))
    assert line.endswith("works there; wait for its first save")


@pytest.mark.parametrize("where", ["at the top", "in the builder"])
def test_code_that_ends_the_program_is_no_success(
    where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    top, inside = ("sys.exit(0)", "") if where == "at the top" else ("", "sys.exit(0)")
    Path("own.py").write_text(
        "import sys\nfrom goatrl.algorithms import register\n"
        f"{top}\n@register('Own')\ndef own(settings):\n    'Mine.'\n    {inside or 'pass'}\n"
    )
    with own_algorithms():
        assert goat("train", "./own.py", "--group", GROUP, "--out", "o") == 1
    line = 3 if top else 7
    assert f"own.py, line {line}: sys.exit ended the command" in error_line(capsys)


def test_dimensions_are_positive() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Spec(0, 1, 1, 1, 1.0)
    about = dataclasses.asdict(Spec(1, 1, 1, 1, 1.0))
    with pytest.raises(ValueError, match="threshold must be a positive number"):
        typed(Spec, {**about, "goal_threshold": float("nan")})


def test_a_pipe_in_a_folder_is_not_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    run = evaluated()
    run.episodes_path.unlink()
    os.mkfifo(run.episodes_path)
    assert goat("compare", "run", "run") == 2
    assert "is damaged (it is no file)" in error_line(capsys)
    run.config_path.unlink()
    os.mkfifo(run.config_path)
    assert goat("compare", "run", "run") == 2
    assert "it has no config.json" in error_line(capsys)
    Path("records").mkdir()
    os.mkfifo("records/a.parquet")
    assert goat("report", "records") == 2
    assert "records/a.parquet is no file" in error_line(capsys)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop_columns(["success"]), "it has no column success"),
        (lambda table: table.set_column(2, "seed", pa.array(["x"] * 4)), "its column seed holds"),
        (lambda table: table.set_column(4, "success", pa.nulls(4, pa.bool_())), "has gaps"),
        (
            lambda table: table.set_column(6, "final_distance", pa.array([np.nan] * 4, "float32")),
            "numbers that are not finite",
        ),
    ],
)
def test_rows_that_are_no_episodes(change, message: str, capsys) -> None:
    run = evaluated()
    table = pq.read_table(run.episodes_path)
    about = json.loads(table.schema.metadata[b"goatrl"])
    content = json.dumps(checksum.without_place(about)).encode()
    changed = change(table).replace_schema_metadata({b"goatrl": content})
    pq.write_table(changed, run.episodes_path)
    assert goat("compare", "run", "run") == 2
    assert message in error_line(capsys)


def test_a_record_of_an_unknown_group(capsys: pytest.CaptureFixture[str]) -> None:
    Path("records").mkdir()
    rows = point_episodes({"R10": [[1]], "R20": [[0]]}).to_pylist()
    records.write(Path("records/a.parquet"), made_by_hand("nowhere", rows, (0,)))
    assert goat("figure", "bars", "records", "--out", "x.svg") == 2
    assert error_line(capsys)
    assert goat("report", "records", "--out", "x.html") == 2
    assert "no records in records" in error_line(capsys)


def test_a_page_says_what_is_wrong_with_the_only_run(capsys: pytest.CaptureFixture[str]) -> None:
    run = evaluated("runs/one")
    content = bytearray(run.episodes_path.read_bytes())
    content[len(content) // 2] ^= 1
    run.episodes_path.write_bytes(content)
    assert goat("report", "runs", "--out", "x.html") == 2
    assert "runs/one/episodes.parquet has changed since it was written" in error_line(capsys)


@pytest.mark.parametrize("said", [{}, {"step": "x"}, {"step": float("nan")}, {"step": True}])
def test_a_checkpoint_that_does_not_say_its_step(said: dict[str, object]) -> None:
    checkpoint.save(Path("c.safetensors"), {"any": np.zeros(1)}, said)
    with pytest.raises(GoatError, match="is damaged or not a checkpoint of a run"):
        checkpoint.number(Path("c.safetensors"), "step")


# Honest numbers


def test_a_checkpoint_with_nan_is_damaged() -> None:
    checkpoint.save(Path("c.safetensors"), {"w": np.float32([1.0, np.inf])}, {})
    checkpoint.restore(Path("c.safetensors"), {"w": jnp.zeros(2)})
    checkpoint.save(Path("c.safetensors"), {"w": np.float32([1.0, np.nan])}, {})
    with pytest.raises(GoatError, match="w holds numbers that are none"):
        checkpoint.restore(Path("c.safetensors"), {"w": jnp.zeros(2)})


@pytree
class Constant:
    """Does always the same."""

    def init(self, key: object, spec: Spec) -> TrainState:
        return acting(action=jnp.zeros(1))

    def act(self, state: TrainState, observation: jnp.ndarray, goal: jnp.ndarray) -> jnp.ndarray:
        return jnp.broadcast_to(state.params["action"], (*observation.shape[:-1], 2))


@pytest.mark.parametrize("action", [np.nan, np.inf])
def test_an_action_that_is_not_finite_is_no_failed_episode(
    action: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episodes, "prune_to_policy", lambda algorithm, spec, state: state)
    state, group = acting(action=jnp.full((1, 1), action)), tasks.get(GROUP)
    with pytest.raises(GoatError, match="an achieved goal is not finite") as caught:
        episodes.evaluate([(Constant(), 0)], state, group, group.tasks[:1])
    assert caught.value.exit_code == 1


def test_mujoco_is_given_no_nan() -> None:
    family = tasks.get("reach-left-right").family
    starts, _ = tasks.get("reach-left-right").tasks[0].draw(0, 1)
    with family.simulator(1) as simulator:
        simulator.reset(starts)
        with pytest.raises(GoatError, match="an action is not finite"):
            simulator.step(np.full((1, 4), np.nan))


# Reports


def test_only_pictures_that_lie_there_are_embedded() -> None:
    Path("media").mkdir()
    for name, content in (("a.png", PNG), ("b.png", b"secret"), ("c.mp4", b"\0\0\0\x18ftypisom")):
        Path("media", name).write_bytes(content)
    Path("secret.png").write_bytes(PNG)
    Path("media/d.png").symlink_to("../secret.png")
    Path("media/e.txt").write_bytes(PNG)
    os.mkfifo("media/f.png")
    found = [path.name for path in sorted(Path("media").iterdir()) if is_media(path)]
    assert found == ["a.png", "c.mp4"]
    Path("elsewhere").symlink_to("media")
    assert not is_media(Path("elsewhere/a.png"))


@pytest.mark.parametrize(
    ("label", "field"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("+1+cmd", "'+1+cmd"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("+HER", "+HER"),  # as the paper calls it
        ("-0.5", "-0.5"),
        ("-1.2e-05", "-1.2e-05"),
        ("GOAT(tau)", "GOAT(tau)"),
    ],
)
def test_labels_compute_nothing_in_a_spreadsheet(label: str, field: str) -> None:
    assert in_csv(label) == field
    entry = tables.Entry("d", "t", label, 1.0, 0.0, 1, None, 2, False)
    (row,) = csv.DictReader(io.StringIO(tables.to_csv({"success": [entry]}), newline=""))
    assert row["algorithm"] == field


def test_labels_are_text_in_markdown() -> None:
    assert in_markdown("GOAT(tau) + UW_2") == "GOAT(tau) + UW_2"
    assert in_markdown("a|b\n<img>[x](y)`") == r"a\|b \<img\>\[x\](y)\`"
    entry = tables.Entry("d", "t", "a|b\nc", 1.0, 0.0, 1, None, 2, False)
    assert r"| dataset | goals | a\|b c |" in tables.markdown([entry]).splitlines()


# The user's own code


OWN = """
import jax.numpy as jnp
from goatrl.algorithms import register
from goatrl.learn.agent import weighted_regression


@register("Own")
def own(settings):
    '''Mine.'''
    {body}
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return None", "what own returns has no sampler"),
        ("return 7", "what own returns has no sampler"),
        ("return weighted_regression", "what own returns has no sampler"),
        ("return settings", "what own returns has no sampler"),
        ("return type(weighted_regression(settings))", "what own returns has no sampler"),
        ("return {}['x']", "own.py, line 10: KeyError: x"),
    ],
)
def test_builders_that_return_nonsense(
    body: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("own.py").write_text(OWN.format(body=body))
    with own_algorithms():
        for words in (["train", "own.py", "--group", GROUP, "--out", "run"], ["list", "own.py"]):
            assert goat(*words) == 2
            assert message in error_line(capsys)
    assert not Path("run").exists()


def test_the_boundary_has_one_line_for_everything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    errors = [
        (MemoryError(), 1, "not enough memory"),
        (OSError(5, "Input/output error", "file"), 2, "file: Input/output error"),
        (OSError("several\nlines"), 70, "(OSError: several lines); rerun with --debug"),
        (RuntimeError("x"), 70, "an error of goatrl itself (RuntimeError: x)"),
    ]
    for error, code, message in errors:

        def fail(self: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(cli.List, "run", fail)
        assert goat("list") == code
        assert message in error_line(capsys)
        with pytest.raises(type(error)):
            goat("list", "--debug")


METHODS = """
import dataclasses
from goatrl.algorithms import register
from goatrl.learn.agent import Agent, weighted_regression
from goatrl.types import pytree


@pytree
class Faulty(Agent):
    def {method}(self, *args):
        return {{}}["nothing"]


@register("Faulty")
def faulty(settings):
    '''Fails.'''
    made = weighted_regression(settings)
    return Faulty(**{{f.name: getattr(made, f.name) for f in dataclasses.fields(made)}})
"""


@pytest.mark.parametrize("method", ["init", "update", "update_target", "act"])
def test_faults_in_the_users_own_methods(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("own.py").write_text(METHODS.format(method=method))
    with own_algorithms():
        assert goat("train", "own.py", "--group", GROUP, "--updates", 8, "--out", "run") == 2
    assert error_line(capsys) == "goat: own.py, line 11: KeyError: nothing"
    assert not Path("run").exists()
