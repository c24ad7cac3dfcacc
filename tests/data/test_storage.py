"""Files: what is saved comes back, what is damaged is named, what was there survives a failed
write.
"""

from __future__ import annotations

import dataclasses
import errno
import gc
import io
import os
import pickle
import stat
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from goatrl.data import goal_threshold, storage
from goatrl.disk.files import write_atomically
from goatrl.episodes import make_episodes
from goatrl.types import Episodes, GoatError

NAMES = ("observations", "achieved", "actions", "goals")


def small() -> Episodes:
    return make_episodes(
        np.arange(12.0).reshape(2, 3, 2),
        np.arange(6.0).reshape(2, 3, 1),
        np.ones((2, 2, 1)),
        np.ones((2, 1)),
    )


def as_arrays(episodes: Episodes) -> dict[str, np.ndarray]:
    return {name: np.asarray(getattr(episodes, name)) for name in NAMES}


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_dataset_comes_back_bit_for_bit(tmp_path: Path, odd_episodes: Episodes) -> None:
    strange = np.array(odd_episodes.actions)
    strange[0, 0] = [
        -0.0,
        np.finfo(np.float32).tiny / 8,
    ]  # a sign and a denormal that arithmetic could lose
    episodes = dataclasses.replace(odd_episodes, actions=strange)
    path = tmp_path / "new" / "folder" / "data.npz"
    storage.save(episodes, path)
    loaded = storage.load(path)
    for name, array in as_arrays(episodes).items():
        back = getattr(loaded, name)
        assert (back.dtype, back.shape) == (array.dtype, array.shape)
        assert back.tobytes() == array.tobytes()
    assert loaded.checksum() == episodes.checksum()
    assert files(path.parent) == ["data.npz"]


def test_lengths_goals_and_ends_come_back(tmp_path: Path) -> None:
    lengths = (2, 1, 4)
    episodes = make_episodes(
        [np.ones((length + 1, 3)) * n for n, length in enumerate(lengths)],
        [np.ones((length + 1, 2)) * n for n, length in enumerate(lengths)],
        [np.ones((length, 1)) for length in lengths],
        [np.arange(2.0 * length).reshape(length, 2) for length in lengths],
        terminated=[True, False, True],
    )
    storage.save(episodes, tmp_path / "a.npz")
    loaded = storage.load(tmp_path / "a.npz")
    assert loaded.checksum() == episodes.checksum()
    np.testing.assert_array_equal(loaded.lengths, lengths)
    np.testing.assert_array_equal(loaded.terminated, [True, False, True])


def test_padded_arrays_with_lengths_are_read(tmp_path: Path) -> None:
    arrays = as_arrays(small())
    np.savez(tmp_path / "a.npz", **arrays, lengths=[2, 1])
    loaded = storage.load(tmp_path / "a.npz")
    assert [path.ravel().tolist() for path in loaded.paths()] == [[0, 1, 2], [3, 4]]
    arrays["observations"] = arrays["observations"].copy()
    arrays["observations"][1, 2] = np.nan  # what lies beyond the end is not read
    np.savez(tmp_path / "a.npz", **arrays, lengths=[2, 1])
    assert storage.load(tmp_path / "a.npz").checksum() == loaded.checksum()
    arrays["observations"][1, 1] = np.nan
    np.savez(tmp_path / "a.npz", **arrays, lengths=[2, 1])
    with pytest.raises(GoatError, match=r"observations contains 2 values .*index \(4, 0\)"):
        storage.load(tmp_path / "a.npz")
    arrays = as_arrays(small())
    np.savez(tmp_path / "b.npz", **arrays, lengths=[2, 3])
    with pytest.raises(GoatError, match=r"b\.npz: observations has shape .* up to 3 actions need"):
        storage.load(tmp_path / "b.npz")


def test_a_file_that_declares_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, **as_arrays(small()) | {"observations": np.zeros((2**20, 3, 2))})
    assert path.stat().st_size < 2**20
    ours = os.sysconf
    monkeypatch.setattr(os, "sysconf", lambda name: 2**12 if "PHYS" in name else ours(name))
    with pytest.raises(
        GoatError, match=r"a\.npz declares 0\.\d+ GiB, more than half of this machine's memory"
    ):
        storage.load(path)


def test_an_array_is_as_large_as_its_header_says(tmp_path: Path) -> None:
    header = io.BytesIO()
    about = {"descr": "<f4", "fortran_order": False, "shape": (10**9, 11, 2)}
    np.lib.format.write_array_header_1_0(header, about)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        for name in as_arrays(small()):
            file.writestr(f"{name}.npy", header.getvalue())
    with pytest.raises(GoatError, match=r"a\.npz declares 328 GiB, more than half of this"):
        storage.load(tmp_path / "a.npz")


@pytest.mark.parametrize("read", [storage.action_bounds, lambda path, _: goal_threshold(path)])
def test_what_is_declared_beside_the_episodes_may_be_no_larger_either(
    read: Callable[[Path, Episodes], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, much = tmp_path / "a.npz", np.zeros(2**23)
    beside = {"action_low": much, "action_high": much, "goal_threshold": much}
    np.savez_compressed(path, **as_arrays(small()), **beside)
    ours = os.sysconf
    monkeypatch.setattr(os, "sysconf", lambda name: 2**12 if "PHYS" in name else ours(name))
    episodes = storage.load(path)
    with pytest.raises(GoatError, match=r"a\.npz declares .* GiB, more than half of this"):
        read(path, episodes)


def test_a_file_keeps_the_goal_threshold(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    storage.save(small(), path, goal_threshold=0.1)
    assert goal_threshold(path) == 0.1
    assert storage.load(path).checksum() == small().checksum()
    storage.save(small(), path)
    assert goal_threshold(path) is None
    for wrong in (0.0, -1.0, np.nan):
        with pytest.raises(GoatError, match="goal threshold must be a positive number"):
            storage.save(small(), path, goal_threshold=wrong)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (-1.0, "the goal threshold must be a positive number, not -1"),
        (np.ones((2, 2)), "the goal threshold must be one number"),
        ("near", "goal_threshold are no arrays of numbers"),
    ],
)
def test_a_goal_threshold_that_is_none_is_refused(
    declared: object, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, **as_arrays(small()), goal_threshold=declared)
    with pytest.raises(GoatError, match=rf"a\.npz: {message}"):
        goal_threshold(path)


def test_arrays_on_the_device_are_saved_too(tmp_path: Path) -> None:
    episodes = small()
    storage.save(
        Episodes(**{name: jnp.asarray(array) for name, array in as_arrays(episodes).items()}),
        tmp_path / "a.npz",
    )
    assert storage.load(tmp_path / "a.npz").checksum() == episodes.checksum()


def test_an_npz_of_doubles_made_elsewhere_is_read(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz",
        extra=np.ones(1),
        **{name: a.astype(np.float64) for name, a in as_arrays(small()).items()},
    )
    assert storage.load(tmp_path / "a.npz").checksum() == small().checksum()


@pytest.mark.parametrize("suffix", [".pkl", ".pickle"])
def test_a_pickle_goes_to_the_careful_reader(tmp_path: Path, suffix: str) -> None:
    arrays = as_arrays(small())
    path = tmp_path / f"theirs{suffix}"
    goals = np.repeat(arrays["goals"][:, None], 2, axis=1)
    path.write_bytes(
        pickle.dumps(
            {
                "o": arrays["observations"],
                "ag": arrays["achieved"],
                "u": arrays["actions"],
                "g": goals,
            }
        )
    )
    assert storage.load(path).checksum() == small().checksum()
    path.write_bytes(b"cos\nsystem\n.")
    with pytest.raises(GoatError, match=r"refused: it contains the name 'os\.system'"):
        storage.load(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.npz", tmp_path / "none.pkl"):
        with pytest.raises(GoatError, match=f"no such file: {path}"):
            storage.load(path)


def test_a_file_cut_at_any_byte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    storage.save(small(), path)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(GoatError, match="damaged or not an npz dataset"):
            storage.load(path)


@pytest.mark.parametrize(
    "content", [b"", b"text\n", b"PK\x03\x04" + b"\0" * 40, b"\x93NUMPY\x01\x00", b"\0" * 1000]
)
def test_other_content_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(GoatError, match="damaged or not an npz dataset"):
        storage.load(path)


def test_a_single_array_is_no_dataset(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.ones(3))
    (tmp_path / "a.npz").write_bytes(buffer.getvalue())
    with pytest.raises(GoatError, match="damaged or not an npz dataset"):
        storage.load(tmp_path / "a.npz")


def test_a_file_of_other_content_is_closed_again(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(b"PK\x03\x04" + b"\0" * 40)
    # np.load alone would leave it open where it finds no archive in it.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(GoatError):
            storage.load(path)
        gc.collect()
    assert [str(warning.message) for warning in caught] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_array_is_named(tmp_path: Path, name: str) -> None:
    arrays = as_arrays(small())
    del arrays[name]
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(GoatError, match=f"is missing {name};"):
        storage.load(tmp_path / "a.npz")


class Touch:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return (Path.touch, (Path(self.path),))


def test_objects_in_an_npz_are_refused_and_not_run(tmp_path: Path) -> None:
    shown = tmp_path / "ran"
    arrays = as_arrays(small()) | {"actions": np.full((2, 2, 1), Touch(str(shown)), object)}
    np.savez(tmp_path / "a.npz", **arrays)
    with np.load(tmp_path / "a.npz", allow_pickle=True) as file:
        file["actions"]
    assert shown.exists()  # the file is a working program: NumPy runs it where it is allowed to
    shown.unlink()
    with pytest.raises(GoatError, match="damaged or not an npz dataset"):
        storage.load(tmp_path / "a.npz")
    assert not shown.exists()


def test_arrays_that_are_no_dataset_are_refused_with_the_file(tmp_path: Path) -> None:
    arrays = as_arrays(small())
    arrays["goals"] = arrays["goals"] * np.nan
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(
        GoatError, match=r"a\.npz: goals contains 2 values that are not finite .*index \(0, 0\)"
    ):
        storage.load(tmp_path / "a.npz")


def stored_with_header(path: Path, header: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name in NAMES:
            content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 8
            archive.writestr(f"{name}.npy", content)


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}\n",
        b"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}\n",
        b"{'descr': '<f8', 'fortran_order': False}\n",
        b"__import__('os')\n",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (144115188075855872,)}\n",
        b"{",
    ],
)
def test_a_strange_array_header_is_refused(tmp_path: Path, header: bytes) -> None:
    stored_with_header(tmp_path / "a.npz", header)
    with pytest.raises(GoatError, match=r"damaged or not an npz dataset|declares 4"):
        storage.load(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("offset", "value"),
    [(8, 1), (10, 99), (6, 255)],
    ids=["encrypted", "another compression", "another version"],
)
def test_an_archive_of_another_kind_is_refused(tmp_path: Path, offset: int, value: int) -> None:
    path = tmp_path / "a.npz"
    storage.save(small(), path)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + offset] = value
    path.write_bytes(bytes(content))
    with pytest.raises(GoatError, match="damaged or not an npz dataset"):
        storage.load(path)


def test_a_write_replaces_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"something longer than what follows")
    write_atomically(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"
    assert files(tmp_path) == ["file"]
    assert (
        stat.S_IMODE(path.stat().st_mode) == 0o644
    )  # a temporary file's own mode would hide it from others


def test_a_half_written_file_is_never_seen_under_its_name(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    seen = []

    def write(file) -> None:
        file.write(b"half")
        file.flush()
        seen.append(path.read_bytes())

    write_atomically(path, write)
    assert seen == [b"old"]


@pytest.mark.parametrize("before", [b"old", None])
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, before: bytes | None) -> None:
    path = tmp_path / "file"
    if before is not None:
        path.write_bytes(before)

    def write(file) -> None:
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(GoatError, match=f"cannot write {path}: no space left"):
        write_atomically(path, write)
    assert files(tmp_path) == ([] if before is None else ["file"])
    assert before is None or path.read_bytes() == before


def test_a_disk_that_is_full_only_at_the_end_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(GoatError, match="no space left"):
        write_atomically(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"old"
    assert files(tmp_path) == ["file"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError, SystemExit])
def test_an_interrupted_write_leaves_the_old_file(
    tmp_path: Path, kind: type[BaseException]
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write(file) -> None:
        file.write(b"half")
        raise kind

    with pytest.raises(kind):
        write_atomically(path, write)
    assert path.read_bytes() == b"old"
    assert files(tmp_path) == ["file"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "below", tmp_path / "folder"):
        with pytest.raises(GoatError, match=f"cannot write {path}: |file is not a folder"):
            write_atomically(path, lambda file: file.write(b"new"))
    assert files(tmp_path) == ["file", "folder"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_dataset_that_cannot_be_saved_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.npz"
    storage.save(small(), path)
    before = path.read_bytes()

    def full(file, **_) -> None:
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(GoatError, match="no space left"):
        storage.save(small(), path)
    assert path.read_bytes() == before
    assert files(tmp_path) == ["a.npz"]


def test_what_is_no_dataset_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("x,y\n1,2\n")
    for source, message in {
        tmp_path: "is a folder, and a dataset is a file; goatrl reads .npz, .pkl",
        tmp_path / "log.csv": "cannot read log.csv: goatrl reads .npz, .pkl, .pickle, .parquet, "
        ".hdf5, .h5 and minari:ID",
        Path("pointreach-expert-10"): "to use that task group, say --group pointreach-expert-10",
    }.items():
        with pytest.raises(GoatError) as refused:
            storage.load(source)
        assert message in str(refused.value)


def test_a_further_format_is_a_further_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(storage.READERS, ".mine", lambda path: small())
    (tmp_path / "x.mine").touch()
    assert storage.load(tmp_path / "x.mine").checksum() == small().checksum()
