"""One flipped bit of a checkpoint, of agents or of a record is found, wherever it is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from safetensors.numpy import save_file

from goatrl import tasks
from goatrl.disk import checkpoint, checksum
from goatrl.disk.identity import Identity
from goatrl.experiments import records
from goatrl.runs.folder import RunFolder
from goatrl.types import GoatError
from helpers import point_episodes

STATE = {"weights": np.arange(24, dtype=np.float32)}
IDENTITY = Identity("cell", {"seeds": 1})
ROWS = pa.table({"seed": list(range(30)), "task": ["R10"] * 30, "split": ["iid"] * 30})
GROUP = tasks.get("pointreach-expert-10")
EPISODES = point_episodes({"R10": [[1, 0]], "R20": [[0, 0]]})


def a_checkpoint(folder: Path) -> tuple[Path, Callable[[], object]]:
    path = folder / "checkpoint.safetensors"
    checkpoint.save(path, STATE, {"step": 8})

    def read() -> object:
        return checkpoint.describe(path), checkpoint.restore(path, STATE)

    return path, read


def a_record(folder: Path) -> tuple[Path, Callable[[], object]]:
    path = folder / "record.parquet"
    records.write_table(path, ROWS, IDENTITY, {"more": 1})

    def read() -> object:
        with records.opened(path, "cell") as (identity, more, rows):
            return identity.about, more, rows

    return path, read


def episodes(folder: Path) -> tuple[Path, Callable[[], object]]:
    run = RunFolder(folder)
    run.write_episodes(EPISODES, GROUP, 8)
    return run.episodes_path, run.read_episodes


KINDS = [a_checkpoint, a_record, episodes]


def flipped(content: bytes) -> Iterator[bytes]:
    """One bit of every byte, a different one from byte to byte."""
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        yield bytes(changed)


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_found(tmp_path: Path, kind) -> None:
    path, read = kind(tmp_path)
    whole = path.read_bytes()
    read()
    key = whole.index(checksum.KEY.encode())
    # without its name a checksum is none, and without that all is taken as it is
    harmless = range(key, key + len(checksum.KEY) + len('\\": \\"'))
    places = range(0, len(whole), max(len(whole) // 400, 1))
    unnoticed = []
    for place, content in enumerate(flipped(whole)):
        if place in places or key - 50 < place < key + 150:
            path.write_bytes(content)
            checkpoint._is_intact.cache_clear()  # its clock may not have moved since
            with contextlib.suppress(GoatError):
                read()
                unnoticed.append(place)
    assert not {*unnoticed} - {*harmless}, [whole[at - 9 : at + 9] for at in unnoticed]


@pytest.mark.parametrize("kind", KINDS)
def test_what_to_do_is_said(tmp_path: Path, kind) -> None:
    path, read = kind(tmp_path)
    content = path.read_bytes()
    place = checksum._PLACE.search(content).start(1)
    digit = b"0" if content[place : place + 1] != b"0" else b"1"
    path.write_bytes(content[:place] + digit + content[place + 1 :])
    with pytest.raises(GoatError, match=rf"{path} has changed since .*checksum differs.*; delete"):
        read()


def test_files_from_before_there_were_checksums_are_read(tmp_path: Path) -> None:
    path = tmp_path / "old.safetensors"
    save_file(STATE, path, metadata={"goatrl": '{"step": 8}'})
    assert checkpoint.describe(path) == {"step": 8}
    np.testing.assert_array_equal(checkpoint.restore(path, STATE)["weights"], STATE["weights"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_content_is_the_same_bytes(tmp_path: Path, kind) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = kind(tmp_path / "a")[0], kind(tmp_path / "b")[0]
    assert one.read_bytes() == other.read_bytes()


def test_what_describes_a_file_does_not_say_its_checksum(tmp_path: Path) -> None:
    assert a_checkpoint(tmp_path)[1]()[0] == {"step": 8}
    assert a_record(tmp_path)[1]()[1] == {"more": 1}
    assert checksum.KEY not in episodes(tmp_path)[1]()[1]
