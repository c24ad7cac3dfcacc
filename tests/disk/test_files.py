"""Writes that last, and what they leave behind when they do not end."""

from __future__ import annotations

import errno
import fcntl
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from crashes.layer import CUT, CUT_NAMES, STOP, Layer, Stopped, under
from goatrl.disk import files, metrics
from goatrl.types import GoatError


def write(path: Path, text: str) -> None:
    files.write_text(path, text)


def write_and_go_on(path: Path) -> None:
    write(path, "new")
    files.append(path.with_name("other"), "something else")
    files.sync(path.with_name("other"))


@pytest.mark.parametrize("fault", [STOP, CUT, CUT_NAMES])
def test_at_every_step_a_file_is_the_old_or_the_new_one(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "folder" / "file"
    with under(Layer()) as layer:
        write(path, "old")
    for step in range(1, layer.steps + 1):
        write(path, "old")
        # the folder is there: the last steps are those of what follows
        with under(Layer(step, fault)), pytest.raises(Stopped):
            write_and_go_on(path)
        assert path.read_text() in ("old", "new")
    write(path, "end")
    assert {each.name for each in path.parent.iterdir()} <= {"file", "other"}, "nothing left over"


@pytest.mark.parametrize("fault", [CUT, CUT_NAMES])
def test_what_is_written_when_a_write_returns_survives_a_power_cut(
    tmp_path: Path, fault: str
) -> None:
    path = tmp_path / "new" / "folder" / "file"
    with under(Layer()) as layer:
        write(path, "new")
    later = layer.steps + 1
    path.unlink()
    path.parent.rmdir()
    path.parent.parent.rmdir()
    with under(Layer(later, fault)), pytest.raises(Stopped):
        write_and_go_on(path)
    assert path.read_text() == "new"


@pytest.mark.parametrize("missing", ["the file's sync", "the folder's sync"])
def test_a_power_cut_is_noticed_if_a_sync_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """The layer itself: it must find what it looks for."""
    path = tmp_path / "file"
    write(path, "old")
    if missing == "the file's sync":
        monkeypatch.setattr(Layer, "fsync", lambda self, descriptor: None)
    else:
        monkeypatch.setattr(files, "_sync_folder", lambda folder: None)
    with under(Layer()) as layer:
        write(path, "old")
    with under(Layer(layer.steps + 1, CUT_NAMES)) as layer, pytest.raises(Stopped):
        write_and_go_on(path)
    assert layer.lost() == [str(path)]


def test_a_write_that_goes_on_is_not_left_over(tmp_path: Path) -> None:
    seen: list[str] = []

    def slow(file) -> None:
        file.write(b"one")
        write(tmp_path / "two", "two")  # looks for what is left over
        seen.extend(path.suffix for path in tmp_path.iterdir())

    files.write_atomically(tmp_path / "one", slow)
    assert ".tmp" in seen
    assert (tmp_path / "one").read_text() == "one"


def test_only_our_own_left_overs_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".goatrl-0123.tmp").touch()
    (tmp_path / ".other.tmp").touch()
    (tmp_path / "goatrl-0123.tmp").touch()
    (tmp_path / ".goatrl-link.tmp").symlink_to(tmp_path / ".other.tmp")
    write(tmp_path / "file", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".goatrl-link.tmp",
        ".other.tmp",
        "file",
        "goatrl-0123.tmp",
    ]


def test_without_locks_nothing_is_removed_and_writing_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: object, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    (tmp_path / ".goatrl-0123.tmp").touch()
    write(tmp_path / "file", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".goatrl-0123.tmp", "file"]


def test_a_file_is_as_open_to_others_as_the_user_wants(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / "file", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_a_folder_that_cannot_be_synced_by_its_file_system_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = os.fsync

    def refuse(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EINVAL, "Invalid argument")
        ours(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    write(tmp_path / "file", "text")
    assert (tmp_path / "file").read_text() == "text"


@pytest.mark.parametrize(
    ("step", "do"),
    [
        (1, lambda path: files.append(path, "more")),
        (2, lambda path: files.append(path, "more")),
        (1, files.sync),
        (2, files.sync),
        (1, files.remove),
    ],
)
def test_what_fails_is_one_line(tmp_path: Path, step: int, do: Callable[[Path], None]) -> None:
    path = tmp_path / "file"
    path.write_text("text")
    with under(Layer(step, "EIO")), pytest.raises(GoatError, match=f"cannot write {path}: "):
        do(path)


def test_half_a_row_of_metrics_is_dropped(tmp_path: Path) -> None:
    """Half of the number 1000 would be the number of an update before the checkpoint."""
    path = tmp_path / "metrics.csv"
    metrics.append(path, ["step", "seed"], [[100, 0], [200, 0]])
    files.append(path, "10")
    metrics.truncate(path, 200, "step,seed")
    assert path.read_text() == "step,seed\n100,0\n200,0\n"
    path.write_text("step,se")
    metrics.truncate(path, 200, "step,seed")
    assert not path.exists()


def test_delays_only_delay(tmp_path: Path) -> None:
    with under(Layer(delays=random.Random(0))):
        write(tmp_path / "file", "text")
    assert (tmp_path / "file").read_text() == "text"
