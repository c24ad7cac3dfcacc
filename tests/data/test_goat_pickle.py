"""A pickle is a program; the authors' files are read without running any of it."""

from __future__ import annotations

import pickle
import struct
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goatrl.data import goat_pickle
from goatrl.types import GoatError

RECONSTRUCT = np._core.multiarray._reconstruct
FROM_BUFFER = np._core.numeric._frombuffer
F8 = np.dtype("f8")

Reader = Callable[[bytes], dict[str, np.ndarray]]


class Crafted:
    """Pickles as a call of `call` with `args`, and then as a state that is put into the result."""

    def __init__(self, call: Callable, args: tuple, *state: object) -> None:
        self.reduced = (call, args, *state)

    def __reduce__(self) -> tuple:
        return self.reduced


class Subclass(np.ndarray):
    pass


def array_with(*state: object) -> Crafted:
    """An array whose description is `state`, whatever that is."""
    return Crafted(RECONSTRUCT, (np.ndarray, (0,), b"b"), state)


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    def of(content: bytes) -> dict[str, np.ndarray]:
        path = tmp_path / "file.pkl"
        path.write_bytes(content)
        return goat_pickle.read_arrays(path)

    return of


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    return {
        "double": rng.normal(size=(2, 3, 4)),
        "single": rng.normal(size=5).astype(np.float32),
        "half": np.ones((2, 2), np.float16),
        "integers": np.arange(6).reshape(3, 2),
        "bytes": np.arange(7, dtype=np.uint8),
        "truths": np.array([True, False]),
        "fortran": np.asfortranarray(rng.normal(size=(3, 5))),
        "big_endian": np.arange(4, dtype=">f4"),
        "big_endian_integers": np.arange(4, dtype=">i2").reshape(2, 2),
        "strided": rng.normal(size=(4, 6))[::2, ::3],
        "empty": np.zeros((0, 3)),
        "scalar": np.array(2.5),
    }


def assert_same(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> None:
    assert list(ours) == list(theirs)
    for name, array in theirs.items():
        assert ours[name].dtype == array.dtype, name
        np.testing.assert_array_equal(ours[name], array, err_msg=name, strict=True)


PROTOCOLS = [2, 3, 4, 5]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_plain_arrays_come_back(read: Reader, protocol: int) -> None:
    assert_same(read(pickle.dumps(arrays(), protocol)), arrays())


def test_files_of_older_numpy_name_another_module(read: Reader) -> None:
    content = pickle.dumps(arrays(), 3)
    assert b"numpy._core" in content
    assert_same(read(content.replace(b"numpy._core", b"numpy.core")), arrays())


def test_an_array_that_appears_twice_comes_back_twice(read: Reader) -> None:
    array = np.arange(3.0)
    assert_same(read(pickle.dumps({"a": array, "b": array})), {"a": array, "b": array})


def test_an_empty_dictionary_has_no_arrays(read: Reader) -> None:
    assert read(pickle.dumps({})) == {}


# Files that run something when they are loaded with pickle. {} is the file whose appearance shows
# that they did.
PROGRAMS: dict[str, Callable[[str], bytes]] = {
    "GLOBAL and REDUCE": lambda s: f"cos\nsystem\n(Vtouch {s}\ntR.".encode(),
    "GLOBAL and OBJ": lambda s: f"(cos\nsystem\nVtouch {s}\no.".encode(),
    "INST": lambda s: f"(Vtouch {s}\nios\nsystem\n.".encode(),
    "STACK_GLOBAL": lambda s: (
        b"\x80\x04\x8c\x02os\x8c\x06system\x93X"
        + struct.pack("<I", len(s) + 6)
        + f"touch {s}".encode()
        + b"\x85R."
    ),
    "STACK_GLOBAL by way of another module": lambda s: (
        b"\x80\x04\x8c\x06shutil\x8c\x09os.system\x93X"
        + struct.pack("<I", len(s) + 6)
        + f"touch {s}".encode()
        + b"\x85R."
    ),
    "a class with __reduce__": lambda s: pickle.dumps(Crafted(Path.touch, (Path(s),))),
    "builtins.eval": lambda s: pickle.dumps(Crafted(eval, (f"open({s!r}, 'w').close()",))),
    "builtins.eval, protocol 2": lambda s: pickle.dumps(
        Crafted(eval, (f"open({s!r}, 'w').close()",)), 2
    ),
    "beside a plain array": lambda s: pickle.dumps(
        {"o": np.ones(2), "u": Crafted(eval, (f"open({s!r}, 'w').close()",))}
    ),
    "as a key": lambda s: pickle.dumps({Crafted(eval, (f"open({s!r}, 'w').close()",)): np.ones(2)}),
    "in an array of objects": lambda s: pickle.dumps(
        {"o": np.array([Crafted(eval, (f"open({s!r}, 'w').close()",))], object)}
    ),
    "as the shape of an array": lambda s: pickle.dumps(
        {
            "o": array_with(
                1, Crafted(eval, (f"open({s!r}, 'w').close() or (1,)",)), F8, False, b"12345678"
            )
        }
    ),
    "as a state": lambda s: pickle.dumps(
        Crafted(set, (), Crafted(eval, (f"open({s!r}, 'w').close()",)))
    ),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_program_is_refused_and_not_run(
    read: Reader, tmp_path: Path, program: Callable[[str], bytes]
) -> None:
    shown = tmp_path / "ran"
    content = program(str(shown))
    # Were these bytes no working program, this test could not fail.
    try:
        pickle.loads(content)
    except Exception:
        assert shown.exists()  # some run and then fail
    assert shown.exists()
    shown.unlink()
    with pytest.raises(GoatError, match="was refused"):
        read(content)
    assert not shown.exists()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "value",
    [
        np.array([1, "a", None], object),
        np.array(["text"]),
        np.array([b"text"]),
        np.array([1 + 2j]),
        np.array(["2020-01-01"], "M8[D]"),
        np.zeros(2, [("a", "f8"), ("b", "i4")]),
        np.ones(3).view(Subclass),
        np.ma.masked_array([1.0, 2.0], [True, False]),
        np.float64(1.0),
        np.dtype("f8"),
        np.ndarray,
        np.array,
        3,
        1.5,
        "text",
        b"bytes",
        None,
        [np.ones(2)],
        {"inner": np.ones(2)},
        {1, 2},
    ],
    ids=repr,
)
def test_entries_that_are_no_plain_arrays_are_refused(
    read: Reader, value: object, protocol: int
) -> None:
    with pytest.raises(GoatError, match="was refused"):
        read(pickle.dumps({"good": np.ones(2), "bad": value}, protocol))


@pytest.mark.parametrize(
    "name",
    [1, None, ("a", "b"), b"o", 10**5000],
    ids=["int", "None", "tuple", "bytes", "a huge int"],
)
def test_names_that_are_no_text_are_refused(read: Reader, name: object) -> None:
    with pytest.raises(GoatError):
        read(pickle.dumps({name: np.ones(2)}))


@pytest.mark.parametrize("value", [np.ones(2), [np.ones(2)], (), 1, None, "text", True], ids=repr)
def test_what_is_no_dictionary_is_refused(read: Reader, value: object) -> None:
    with pytest.raises(GoatError, match="instead of a dictionary of arrays"):
        read(pickle.dumps(value))


def test_persistent_references_are_refused(read: Reader) -> None:
    for content in (b"Pname\n.", b"\x80\x04\x8c\x04nameQ."):
        with pytest.raises(GoatError, match="outside the file"):
            read(content)


STATES = {
    "an attribute": (None, {"array": 1}),
    "another attribute": (None, {"dtype": 1}),
    "a call": (None, {"__call__": 1}),
    "a class": (None, {"__class__": 1}),
    "a dictionary": {"array": 1, "dtype": 1, "__class__": 1},
    "a slot and a dictionary": ({"array": 1}, {"array": 1}),
    "a number": 1,
    "an empty tuple": (),
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES.keys())
@pytest.mark.parametrize(
    "target",
    [
        b"cnumpy\nndarray\n",
        b"cnumpy\ndtype\n",
        b"cnumpy._core.multiarray\n_reconstruct\n",
        b"cnumpy._core.numeric\n_frombuffer\n",
    ],
    ids=["ndarray", "dtype", "_reconstruct", "_frombuffer"],
)
def test_no_state_can_be_put_into_the_stand_ins(read: Reader, target: bytes, state: object) -> None:
    # {"o": BUILD(target, state)}; the state's own header and STOP are cut off.
    content = b"\x80\x02}X\x01\x00\x00\x00o" + target + pickle.dumps(state, 2)[2:-1] + b"bs."
    with pytest.raises(GoatError):
        read(content)
    # The stand-ins are shared by all files, so the next file must not notice.
    assert_same(read(pickle.dumps(arrays(), 4)), arrays())
    assert not any(hasattr(stand_in, "__dict__") for stand_in in goat_pickle._ALLOWED.values())


@pytest.mark.parametrize("state", STATES.values(), ids=STATES.keys())
@pytest.mark.parametrize(
    ("call", "args"),
    [(np.dtype, ("f8",)), (RECONSTRUCT, (np.ndarray, (0,), b"b"))],
    ids=["dtype", "array"],
)
def test_no_state_but_its_own_can_be_put_into_an_array(
    read: Reader, call: Callable, args: tuple, state: object
) -> None:
    with pytest.raises(GoatError):
        read(pickle.dumps({"o": Crafted(call, args, state)}))


def test_a_stand_in_is_no_class_that_could_be_instantiated(read: Reader) -> None:
    for content in (
        b"cnumpy\nndarray\n)\x81.",
        b"\x80\x04\x8c\x05numpy\x8c\x07ndarray\x93)}\x92.",
        b"cnumpy\nndarray\n)R.",
    ):
        with pytest.raises(GoatError):
            read(content)


def test_an_array_that_was_never_filled_is_refused(read: Reader) -> None:
    with pytest.raises(GoatError, match="not a plain array"):
        read(pickle.dumps({"o": Crafted(RECONSTRUCT, (np.ndarray, (0,), b"b"))}))


EIGHT = b"12345678"
DESCRIPTIONS = {
    "a byte less": (1, (1,), F8, False, EIGHT[:-1]),
    "a byte more": (1, (1,), F8, False, EIGHT + b"9"),
    "no bytes": (1, (1,), F8, False, b""),
    "text for bytes": (1, (1,), F8, False, "1234567€"),
    "a list for bytes": (1, (1,), F8, False, [1.0]),
    "a negative size": (1, (-1,), F8, False, EIGHT),
    "two negative sizes": (1, (-1, -1), F8, False, EIGHT),
    "a fraction": (1, (1.0,), F8, False, EIGHT),
    "a truth": (1, (True,), F8, False, EIGHT),
    "no tuple": (1, [1], F8, False, EIGHT),
    "no type": (1, (1,), "f8", False, EIGHT),
    "8 TiB": (1, (2**40,), F8, False, EIGHT),
    "a product that wraps to 0 in 64 bits": (1, (2**32, 2**32), F8, False, b""),
    "a product that wraps to 1 in 64 bits": (1, (2**32 + 1, 2**32 - 1), F8, False, EIGHT),
    "beyond 64 bits": (1, (2**200,), F8, False, EIGHT),
    "too many axes": (1, (1,) * 200, F8, False, EIGHT),
    "a part missing": (1, (1,), F8, False),
    "a part more": (1, (1,), F8, False, EIGHT, 1),
}


@pytest.mark.parametrize("description", DESCRIPTIONS.values(), ids=DESCRIPTIONS.keys())
@pytest.mark.parametrize("by", ["state", "buffer"])
def test_a_description_that_does_not_fit_its_bytes_is_refused_without_memory(
    read: Reader, description: tuple, by: str
) -> None:
    if by == "state":
        value = array_with(*description)
    else:
        _, shape, dtype, _, *content = description
        value = Crafted(
            FROM_BUFFER, (content[0] if content else EIGHT, dtype, shape, *["C"] * len(content))
        )
    tracemalloc.start()
    try:
        # The reader's own check, before NumPy sees the description; only the number of axes and of
        # parts is left to others.
        with pytest.raises(GoatError, match=r"was refused|is damaged"):
            read(pickle.dumps({"o": value}))
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_a_few_bytes_cannot_ask_for_much_memory(read: Reader) -> None:
    tracemalloc.start()
    try:
        read_or_refused(read, b"\x80\x04}r" + struct.pack("<I", 2_000_000) + b".")
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def read_or_refused(read: Reader, content: bytes) -> dict[str, np.ndarray] | None:
    try:
        return read(content)
    except GoatError:
        return None


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_file_cut_at_any_byte_is_refused(read: Reader, protocol: int) -> None:
    content = pickle.dumps({"o": np.arange(3.0), "u": np.ones((2, 1), ">i2")}, protocol)
    for length in range(len(content)):
        with pytest.raises(GoatError):
            read(content[:length])


def test_an_empty_file_says_so(read: Reader) -> None:
    with pytest.raises(GoatError, match="is empty"):
        read(b"")


@given(st.binary(max_size=200), st.sampled_from([b"", b"\x80\x04", b"\x80\x02}", b"("]))
def test_random_bytes_are_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, before: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "random.pkl"
    path.write_bytes(before + content)
    try:
        found = goat_pickle.read_arrays(path)
    except GoatError:
        return
    assert all(
        isinstance(array, np.ndarray) and array.dtype.kind in "fiub" for array in found.values()
    )


@given(st.data())
def test_a_valid_file_with_other_bytes_in_it_is_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(
        pickle.dumps(
            {"o": np.arange(3.0), "u": np.ones((2, 1))}, data.draw(st.sampled_from([3, 4, 5]))
        )
    )
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "changed.pkl"
    path.write_bytes(bytes(content))
    try:
        found = goat_pickle.read_arrays(path)
    except GoatError:
        return
    assert all(
        isinstance(array, np.ndarray) and array.dtype.kind in "fiub" for array in found.values()
    )


def theirs(count: int = 2, horizon: int = 3) -> dict[str, np.ndarray]:
    """Arrays in the authors' layout, the goal repeated at every step."""
    rng = np.random.default_rng(3)
    goals = rng.normal(size=(count, 1, 2))
    return {
        "o": rng.normal(size=(count, horizon + 1, 5)),
        "ag": rng.normal(size=(count, horizon + 1, 2)),
        "u": rng.normal(size=(count, horizon, 1)),
        "g": np.repeat(goals, horizon, axis=1),
    }


def put(folder: Path, content: object) -> Path:
    path = folder / "theirs.pkl"
    path.write_bytes(pickle.dumps(content))
    return path


def test_import_takes_one_goal_an_episode(tmp_path: Path) -> None:
    given = theirs()
    episodes = goat_pickle.import_episodes(put(tmp_path, given | {"extra": np.ones(1)}))
    np.testing.assert_array_equal(episodes.observations, given["o"].astype(np.float32))
    np.testing.assert_array_equal(episodes.achieved, given["ag"].astype(np.float32))
    np.testing.assert_array_equal(episodes.actions, given["u"].astype(np.float32))
    np.testing.assert_array_equal(episodes.goals, given["g"][:, 0].astype(np.float32))


@pytest.mark.parametrize("key", ["o", "ag", "u", "g"])
def test_import_names_what_is_missing(tmp_path: Path, key: str) -> None:
    given = theirs()
    del given[key]
    with pytest.raises(GoatError, match=f"is missing {key};"):
        goat_pickle.import_episodes(put(tmp_path, given))


@pytest.mark.parametrize("step", [1, 2])
def test_import_refuses_a_goal_that_changes(tmp_path: Path, step: int) -> None:
    given = theirs()
    given["g"][1, step, 1] += 1e-9
    with pytest.raises(GoatError, match="goal changes within an episode"):
        goat_pickle.import_episodes(put(tmp_path, given))


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        ("o", (2, 3, 5)),
        ("ag", (3, 4, 2)),
        ("u", (2, 3)),
        ("g", (2, 2)),
        ("g", (2, 0, 2)),
        ("g", (2, 3, 5)),
        ("u", (2, 4, 1)),
    ],
)
def test_import_refuses_wrong_shapes(tmp_path: Path, key: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(GoatError, match="shape"):
        goat_pickle.import_episodes(put(tmp_path, theirs() | {key: np.ones(shape)}))


def test_import_refuses_values_that_are_not_finite(tmp_path: Path) -> None:
    given = theirs()
    given["u"][0, 1, 0] = np.nan
    with pytest.raises(GoatError, match=r"index \(0, 1, 0\)"):
        goat_pickle.import_episodes(put(tmp_path, given))


@pytest.mark.parametrize(
    ("name", "count", "dims"),
    [
        ("PointReach/clean_half1_buffer_traj10.pkl", 10, (2, 2, 2)),
        ("PointReach/noise_half1_buffer_traj10.pkl", 10, (2, 2, 2)),
        ("PointReach/noise_half1_buffer_traj50.pkl", 50, (2, 2, 2)),
        ("PointReach/imbalance_clean_buffer_traj10+2.pkl", 12, (2, 2, 2)),
        ("PointReach/imbalance_noise_buffer_traj10+2.pkl", 12, (2, 2, 2)),
        ("PointReach/imbalance_noise_buffer_traj50+4.pkl", 54, (2, 2, 2)),
        ("FetchReach/reach_right_expert_200.pkl", 200, (10, 3, 4)),
        ("FetchReach/reach_far_expert_200.pkl", 200, (10, 3, 4)),
    ],
)
def test_the_authors_files_are_what_pickle_makes_of_them(
    reference_data: Path, name: str, count: int, dims: tuple
) -> None:
    path = reference_data / name
    episodes = goat_pickle.import_episodes(path)
    spec = episodes.spec(1.0)
    assert (episodes.count, episodes.horizon) == (count, 49)
    assert (spec.observation_dim, spec.goal_dim, spec.action_dim) == dims
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the names of NumPy's older modules
        trusted = pickle.loads(path.read_bytes())
    assert_same(goat_pickle.read_arrays(path), dict(trusted))
    np.testing.assert_array_equal(episodes.goals, trusted["g"][:, 0].astype(np.float32))
    np.testing.assert_array_equal(episodes.achieved, trusted["ag"].astype(np.float32))
