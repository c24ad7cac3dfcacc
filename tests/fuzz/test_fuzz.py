"""Files and words from strangers, thousands of them: the command line answers each with an exit
code and at most one line, executes nothing that a file contains, and takes little memory.

`make test` runs a few cases of each kind, `make test-fuzz` many. Cases are always the same ones.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import json
import os
import pickle
import resource
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goatrl import cli
from goatrl import data as datasets
from goatrl.cli import ablate, data, executors, expert, finetune, sweep, training, view
from goatrl.data.parquet import COLUMNS
from goatrl.episodes import make_episodes
from goatrl.types import GoatError

CASES = int(os.environ.get("GOATRL_FUZZ_CASES", "2"))  # of the tests with the fewest
GROWTH = 1.5 * 2**30  # bytes of memory that all cases together may take at most
CANARY = Path("executed")
GROUP = "pointreach-expert-10"
MINARI = "stranger/data-v0"
DATA = {name: f"data.{name}" for name in ("npz", "pkl", "parquet", "hdf5")}


def fuzz(weight: int) -> settings:
    """Many cases of what is read in no time, fewer of what compiles programs."""
    return settings(
        max_examples=weight * CASES,
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What strangers begin with: every kind of file, as goatrl writes it."""
    folder = tmp_path_factory.mktemp("fuzz")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(folder):
        patch.setenv("MINARI_DATASETS_PATH", str(folder / "minari"))
        _write_data(Path("good"))
        small = ("--set", "architecture.hidden=[4]", "--seeds", 1, "--updates", 8)
        _must("train", "bc", "--group", GROUP, *small, "--out", "good/run")
        _must("evaluate", "good/run")
        shutil.copytree("good/run", "good/other")
        some = ("--groups", GROUP, "--algorithms", "bc", "--seeds", 1, "--updates", 8)
        _must("bench", "pointreach", *some, "--out", "good/records")
        (agents,) = Path("good/records/agents").iterdir()
        shutil.copy(agents, "good/agents.safetensors")
        (record,) = Path("good/records").glob("*.parquet")
        shutil.copy(record, "good/record.parquet")
        shutil.copytree("minari", "good/minari")
        yield folder
    taken = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    print(f"memory taken by fuzzing: {taken / 2**20:.0f} MiB")
    assert taken < GROWTH


def _write_data(folder: Path) -> None:
    folder.mkdir()
    generator = np.random.default_rng(0)
    seen, actions = generator.normal(size=(3, 5, 2)), generator.uniform(-1, 1, (3, 4, 2))
    episodes = make_episodes(seen, seen, actions, seen[:, -1])
    datasets.save(episodes, folder / DATA["npz"], (-1, 1))
    goals = np.repeat(seen[:, -1:], 4, axis=1)
    arrays = {"o": seen, "ag": seen, "u": actions, "g": goals}
    (folder / DATA["pkl"]).write_bytes(pickle.dumps(arrays))
    rows: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for n, step in np.ndindex(3, 5):
        at = (n, seen[n, step], seen[n, step], actions[n, min(step, 3)], seen[n, -1])
        for name, value in zip(COLUMNS, at, strict=True):
            rows[name].append(value)
    pq.write_table(pa.table(rows), folder / DATA["parquet"])
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / DATA["hdf5"], "w") as file:
        for n in range(3):
            file[f"data/demo_{n}/obs/place"] = seen[n]
            file[f"data/demo_{n}/actions"] = np.append(actions[n], actions[n, -1:], axis=0)
    convert = ("data", "convert", folder / DATA["npz"], "--goal-threshold", 1)
    _must(*convert, "--out", f"minari:{MINARI}")
    (folder / "mirror.toml").write_text(
        "[[reflection]]\nobservation = { 1 = 0.0 }\ngoal = { 1 = 0.0 }\naction = { 1 = 0.0 }\n"
        "[[translation]]\nobservation = [0]\ngoal = [0]\nby = [-0.1, 0.1]\n"
    )


def _must(*words: object) -> None:
    code, told = run(*words)
    assert code == 0, told


def run(*words: object) -> tuple[int, str]:
    """The command line as in a process of its own, which may not be able to print everything."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        try:
            code = cli.main([str(word) for word in words])
        except SystemExit as ended:  # the parser's way to refuse words, and of --help
            code = int(str(ended.code))
    texts = []
    for stream in streams:
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return code, texts[1]


def assert_refused_or_taken(*words: object) -> int:
    """Run a command, and see that it answers as promised."""
    code, told = run(*words)
    assert code in (0, 1, 2), (code, words, told)
    assert "Traceback" not in told
    lines = [line for line in told.splitlines() if line.startswith("goat: ")]
    assert len(lines) <= 1, told
    assert not CANARY.exists(), words
    return code


# Mutations


class Evil:
    """A pickle that leaves a mark if it is executed."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(CANARY),)


EVIL = pickle.dumps(Evil())
BITS = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=8)
JUNK = st.binary(max_size=40) | st.sampled_from(
    [EVIL, b"", b"\x00" * 16, b"\xff" * 16, b"PAR1", b"cos\nsystem\n(S'x'\ntR."]
)


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """A file with other bytes here and there, a part left out, or a part put in."""
    changed = bytearray(content)
    for where, byte in draw(BITS):
        changed[int(where * len(changed))] = byte
    begin, end = sorted(int(len(content) * draw(st.floats(0, 1))) for _ in range(2))
    cut = draw(st.sampled_from(["nothing", "inside", "end", "into"]))
    if cut == "inside":
        del changed[begin:end]
    elif cut == "end":
        del changed[begin:]
    elif cut == "into":
        changed[begin:begin] = draw(JUNK)
    return bytes(changed)


NUMBERS = st.sampled_from([0, -1, 1, 2**31, 10**30, 1e308, float("nan"), float("inf"), 0.5, True])
TEXTS = st.sampled_from(
    [
        "",
        "x",
        "=1+1",
        "[/red]",
        "[bold",
        "$x_{",
        "|",
        "../..",
        "/dev/full",
        "<script>",
        "evil.py",
        "goat",
        "bc",
        GROUP,
        "\x00",
        "😀",
        "own",
        "random",
        "a" * 300,
    ]
)
VALUES = st.none() | NUMBERS | TEXTS | st.text(max_size=8)
NESTED = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for name, each in inner:
        yield from _places(each, (*path, name))


@st.composite
def altered(draw: st.DrawFn, content: Any) -> Any:
    """A description in JSON in which one to three places say something else, or nothing."""
    changed = {"": copy.deepcopy(content)}
    for _ in range(draw(st.integers(1, 3))):
        place = ("", *draw(st.sampled_from(list(_places(changed[""])))))
        holder: Any = functools.reduce(lambda inside, name: inside[name], place[:-1], changed)
        if len(place) > 1 and draw(st.integers(0, 3)) == 0:
            del holder[place[-1]]
        else:
            holder[place[-1]] = draw(NESTED)
    return changed[""]


DTYPES = ["<f4", "<f8", ">f8", "<i4", "<u1", "<c8", "|b1", "<U3", "<M8[s]", "|S2"]


@st.composite
def some_array(draw: st.DrawFn) -> np.ndarray:
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    made = np.ones(shape) * draw(
        st.sampled_from([0.0, 1.0, -3.5, 1e300, float("nan"), float("inf")])
    )
    with np.errstate(all="ignore"):
        return made.astype(draw(st.sampled_from(["<f4", "<f8", "<i4", "|b1", "<U3", "<c8"])))


@st.composite
def npz(draw: st.DrawFn) -> bytes:
    """An archive of arrays of any shape and kind, of objects, or of a size that it has not."""
    buffer = io.BytesIO()
    names = ["observations", "achieved", "actions", "goals", "lengths", "terminated"]
    names += ["action_low", "action_high", "terminals"]
    with np.load(f"good/{DATA['npz']}") as good, zipfile.ZipFile(buffer, "w") as archive:
        arrays = {name: good[name] for name in good}
        for name in draw(st.lists(st.sampled_from(names), max_size=3)):
            arrays[name] = draw(some_array())
        for name, array in arrays.items():
            how = draw(st.sampled_from(["as it is"] * 8 + ["objects", "huge", "left out"]))
            if how == "left out":
                continue
            content = io.BytesIO()
            if how == "huge":
                about = {
                    "shape": (10**9, 10**3),
                    "fortran_order": False,
                    "descr": draw(st.sampled_from(DTYPES)),
                }
                np.lib.format.write_array_header_1_0(content, about)
            elif how == "objects":
                np.save(content, np.array([Evil()], object))
            else:
                np.save(content, array)
            archive.writestr(f"{name}.npy", content.getvalue(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


# What names can a pickle call, and with what
NAMES = st.sampled_from(
    [
        ("os", "mkdir"),
        ("builtins", "eval"),
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        ("numpy", "load"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("_codecs", "encode"),
        ("builtins", "bytes"),
    ]
)


@st.composite
def crafted_pickle(draw: st.DrawFn) -> bytes:
    """Opcodes in any order, with names that could do harm."""
    parts = [b"\x80\x04"]
    for _ in range(draw(st.integers(1, 8))):
        module, name = draw(NAMES)
        parts.append(
            draw(
                st.sampled_from(
                    [
                        f"c{module}\n{name}\n".encode(),
                        b"(",
                        b")",
                        b"t",
                        b"R",
                        b"b",
                        b"}",
                        b"]",
                        b"N",
                        b"0",
                        b"\x85",
                        b"\x86",
                        b"\x81",
                        b"u",
                        b"s",
                        b"(S'executed'\ntR",
                        b"K\x05",
                        b"\x94",
                        b"h\x00",
                        b"r\xff\xff\xff\x7f",
                        b"\x8d" + b"\xff" * 8,
                        b"X\x01\x00\x00\x00o",
                    ]
                )
            )
        )
    return b"".join([*parts, b"."])


@st.composite
def crafted_parquet(draw: st.DrawFn) -> bytes:
    """Columns of other kinds, or fewer of them."""
    table = pq.read_table(f"good/{DATA['parquet']}")
    for name in draw(st.lists(st.sampled_from(COLUMNS), max_size=2)):
        place = table.column_names.index(name)
        column = draw(
            st.sampled_from(
                [
                    pa.nulls(15),
                    pa.array(["x" * 200] * 15),
                    pa.array([[]] * 15),
                    pa.array([[[1.0]]] * 15),
                    pa.array([b"\xff"] * 15),
                    pa.array([True] * 15),
                    pa.array([None, *([[1.0, 2.0]] * 14)]),
                    pa.array([[float("nan")]] * 15),
                    pa.array([[1e300, 2.0]] * 15),
                    pa.array([{"a": 1}] * 15),
                ]
            )
        )
        table = table.set_column(place, name, column)
    table = table.drop_columns(draw(st.sampled_from([[], ["goal"], ["episode"]])))
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def with_metadata(path: Path, change: Callable[[dict], Any]) -> bytes:
    """A record or table of episodes that says something else about itself."""
    table = pq.read_table(path)
    about = change(json.loads(table.schema.metadata[b"goatrl"]))
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({b"goatrl": json.dumps(about).encode()}), buffer)
    return buffer.getvalue()


def with_header(path: Path, change: Callable[[dict], Any]) -> bytes:
    """A checkpoint that says something else about itself."""
    with safetensors.safe_open(path, framework="numpy") as file:
        about = change(json.loads(file.metadata()["goatrl"]))
    return safetensors.numpy.save(safetensors.numpy.load_file(path), {"goatrl": json.dumps(about)})


# Datasets


@fuzz(10)
@given(st.data())
def test_datasets(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([*DATA, "npz", "pkl", "parquet"]))
    crafted = {"npz": npz(), "pkl": crafted_pickle(), "parquet": crafted_parquet()}
    good = damaged(Path("good", DATA[kind]).read_bytes())
    file = Path(f"stranger.{kind}")
    file.write_bytes(data.draw(good | crafted[kind] if kind in crafted else good))
    command = data.draw(st.sampled_from(["info", "check"]))
    assert_refused_or_taken("data", command, file)


@fuzz(1)
@given(st.data())
def test_minari_folders(data: st.DataObject) -> None:
    shutil.rmtree("minari", ignore_errors=True)
    shutil.copytree("good/minari", "minari")
    folder = Path("minari", MINARI, "data")
    if data.draw(st.booleans()):
        file = folder / "metadata.json"
        file.write_text(json.dumps(data.draw(altered(json.loads(file.read_text())))))
    else:
        file = data.draw(
            st.sampled_from(sorted(path for path in folder.rglob("*") if path.is_file()))
        )
        file.write_bytes(data.draw(damaged(file.read_bytes())))
    assert_refused_or_taken(
        "data", data.draw(st.sampled_from(["info", "check"])), f"minari:{MINARI}"
    )


@fuzz(4)
@given(st.data())
def test_symmetries(data: st.DataObject) -> None:
    text = Path("good/mirror.toml").read_bytes()
    lines = [
        "[[reflection]]",
        "[reflection]",
        "reflection = 1",
        "observation = { 1 = nan }",
        "by = [1]",
    ]
    lines += [
        "swap = [[0, 1]]",
        "swap = [[0, 9]]",
        "swap = 1",
        "goal = [0, []]",
        "a = " + "[" * 2_000,
        "x =",
    ]
    lines += [
        "observation = { x = 1 }",
        "action = { 0 = 'x' }",
        "by = ['a', 'b']",
        "[[translation]]",
    ]
    crafted = st.lists(st.sampled_from(lines), max_size=5).map(
        lambda some: "\n".join(some).encode()
    )
    Path("s.toml").write_bytes(data.draw(damaged(text) | crafted))
    words = (
        "train",
        "bc",
        "--data",
        f"good/{DATA['npz']}",
        "--goal-threshold",
        1,
        "--out",
        "never",
    )
    code = assert_refused_or_taken(*words, "--symmetry", "s.toml", "--seeds", 0)
    assert code == 2, "no seeds, if nothing else"


# Runs, agents, records


@fuzz(1)
@given(st.data())
def test_runs(data: st.DataObject) -> None:
    shutil.rmtree("run", ignore_errors=True)
    shutil.copytree("good/run", "run")
    name = data.draw(st.sampled_from(["config", "config", "episodes", "checkpoint", "bytes"]))
    if name == "config":
        stored = data.draw(altered(json.loads(Path("run/config.json").read_text())))
        Path("run/config.json").write_text(json.dumps(stored))
    elif name == "episodes":
        content = with_metadata(
            Path("run/episodes.parquet"), lambda about: data.draw(altered(about))
        )
        Path("run/episodes.parquet").write_bytes(content)
    elif name == "checkpoint":
        path = Path("run/checkpoint.safetensors")
        path.write_bytes(with_header(path, lambda about: data.draw(altered(about))))
    else:
        path = data.draw(st.sampled_from(sorted(Path("run").iterdir())))
        path.write_bytes(data.draw(damaged(path.read_bytes())))
    words = data.draw(
        st.sampled_from(
            [
                ["compare", "run", "good/other"],
                ["export", "run", "--format", "numpy", "--out", "x.py"],
                ["report", "run", "--out", "x.html"],
                ["compare", "good/other", "run", "--csv", "x.csv"],
            ]
        )
    )
    assert_refused_or_taken(*words)


@fuzz(1)
@given(st.data())
def test_records_and_agents(data: st.DataObject) -> None:
    shutil.rmtree("records", ignore_errors=True)
    Path("records").mkdir()
    record, agents = Path("good/record.parquet"), Path("good/agents.safetensors")
    if data.draw(st.booleans()):
        said = data.draw(st.booleans())
        content = (
            with_header(agents, lambda about: data.draw(altered(about)))
            if said
            else data.draw(damaged(agents.read_bytes()))
        )
        Path("records/a.safetensors").write_bytes(content)
        assert_refused_or_taken(
            "export", "records/a.safetensors", "--format", "numpy", "--out", "x.py"
        )
        return
    content = (
        with_metadata(record, lambda about: data.draw(altered(about)))
        if data.draw(st.booleans())
        else data.draw(damaged(record.read_bytes()))
    )
    Path("records", f"{GROUP}--bc--0.parquet").write_bytes(content)
    words = [
        ["report", "records", "--out", "x.html"],
        ["figure", "bars", "records", "--out", "x.svg"],
    ]
    assert_refused_or_taken(*data.draw(st.sampled_from(words)))


# Words


class Stopped(GoatError):
    """Where work would begin."""


def _stop(*_: object, **__: object) -> Any:
    raise Stopped("stopped before any work")


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    for where, name in (
        (ablate, "train_with_progress"),
        (training, "train_with_progress"),
        (training, "evaluate_agents"),
        (sweep, "train_together"),
        (executors, "LocalExecutor"),
        (finetune, "follow"),
        (expert, "follow"),
        (data, "make_with_progress"),
        (data.cache, "make"),
        (view.View, "actor"),
    ):
        monkeypatch.setattr(where, name, _stop)


COMMANDS = st.sampled_from(
    [
        *(
            ["list"],
            ["list", "goat"],
            ["list", "groups"],
            ["train", "bc", "--out", "w"],
            ["train", "goat"],
        ),
        *(
            ["train", "bc", "--group", GROUP, "--out", "w"],
            ["evaluate", "good/run"],
            ["compare", "good/run"],
        ),
        *(["sweep", "bc", "--group", GROUP, "--out", "w"], ["bench", "pointreach", "--out", "w"]),
        *(
            ["finetune", "good/run", "--out", "w"],
            ["finetune", "--random", "push-left-right", "--out", "w"],
        ),
        *(
            ["expert", "train", "push", "--out", "w"],
            ["expert", "list"],
            ["data", "make", "push-left-right"],
        ),
        *(
            ["data", "make", GROUP, "--out", "w.npz"],
            ["data", "info", GROUP],
            ["data", "check", GROUP],
        ),
        *(
            ["view", "push-left-right", "--task", "Left2Left", "--out", "w.gif"],
            ["report", "good/records"],
        ),
        *(
            ["figure", "bars", "good/records", "--out", "w.svg"],
            ["figure", "regions", "--out", "w.png"],
        ),
        *(
            ["export", "good/run", "--out", "w.onnx"],
            ["data", "convert", f"good/{DATA['npz']}", "--out", "w.npz"],
        ),
        *(
            ["ablate", "--group", GROUP, "--out", "w"],
            ["data", "verify"],
            ["bench"],
            [],
            ["figure"],
        ),
    ]
)
FLAGS = """seeds seed updates batch-size threads episodes horizon rounds timeout out data group
groups set inputs symmetry algorithms algorithm suite goal-threshold environment environment-args
success task tasks run figure csv size format by random log help debugging all yes"""
OPTIONS = st.sampled_from([f"--{name}" for name in FLAGS.split()])
WORDS = (
    st.sampled_from(
        ["-1", "0", "1", "1e9", "nan", "inf", str(10**30), "8", "9" * 5_000, "", " ", "-", "--"]
    )
    | st.sampled_from(
        ["x" * 5_000, "[/red]", "[bold]$", "\udcff\udcfe.npz", "a\x00b", "/dev/full", "/dev/null"]
    )
    | st.sampled_from(
        ["discount=2", "discount=", "=", "architecture.hidden=[]", "nothing.w=1", "{}", "[", "{'"]
    )
    | st.sampled_from(
        ["/", ".", "..", "good", "good/run", f"good/{DATA['pkl']}", GROUP, "goat", "os:World-v0"]
    )
    | st.text(max_size=6)
)


@fuzz(3)
@pytest.mark.usefixtures("no_work")
@given(
    COMMANDS,
    st.lists(st.tuples(OPTIONS, st.lists(WORDS, max_size=2)), max_size=3),
    st.lists(WORDS, max_size=1),
)
def test_words(command: list[str], options: list[tuple[str, list[str]]], first: list[str]) -> None:
    words = [*command, *first, *(word for name, values in options for word in (name, *values))]
    if "--debug" not in words:
        assert_refused_or_taken(*words)


# Whether the tests would notice


def test_a_canary_would_be_seen() -> None:
    pickle.loads(EVIL)
    assert CANARY.exists()
    with pytest.raises(AssertionError):
        assert_refused_or_taken("list")
    CANARY.rmdir()


def test_an_error_of_goatrl_itself_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.List, "run", lambda self: 1 / 0)
    assert run("list") == (
        70,
        "goat: an error of goatrl itself (ZeroDivisionError: division by zero); rerun with --debug "
        "and report what it shows\n",
    )
    with pytest.raises(AssertionError):
        assert_refused_or_taken("list")
