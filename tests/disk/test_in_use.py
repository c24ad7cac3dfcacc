"""A folder in use is refused by the name of its process, and free when that has ended."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from goatrl.disk import claims
from goatrl.disk.claims import Holder, InUse, claimed
from goatrl.types import GoatError

HOLD = (
    "import sys, time; from pathlib import Path; from goatrl.disk.claims import claimed\n"
    "with claimed(Path(sys.argv[1])):\n"
    "    print('mine', flush=True)\n"
    "    time.sleep(600)\n"
)


@pytest.fixture(params=["locks", "no locks"])
def locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """As on most file systems, and as on those that have none."""

    def refuse(file: object, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(claims, "SETTLED", 0.02)
    if request.param == "no locks":
        monkeypatch.setattr(fcntl, "flock", refuse)
    return request.param == "locks"


def left_by(folder: Path, host: str, pid: int) -> None:
    about = {"pid": pid, "host": host, "command": "goat train", "since": "today", "token": "x"}
    (folder / ".in-use").write_text(json.dumps(about))


def gone() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_a_second_one_is_refused_by_name(tmp_path: Path, locks: bool) -> None:
    folder = tmp_path / "run"
    with (
        claimed(folder),
        pytest.raises(
            InUse,
            match=rf"^{folder} is in use by process {os.getpid()} on {platform.node()} \(.+, since "
            r"\d{4}-.+\); wait until it has ended, or stop it first$",
        ),
        claimed(folder),
    ):
        raise AssertionError
    assert list(folder.iterdir()) == []
    with claimed(folder):
        pass


def test_what_ends_soon_is_waited_for(tmp_path: Path, locks: bool) -> None:
    begun, ended = threading.Event(), []

    def hold() -> None:
        with claimed(tmp_path):
            begun.set()
            time.sleep(0.1)
            ended.append("the other")

    other = threading.Thread(target=hold)
    other.start()
    begun.wait()
    with claimed(tmp_path, wait=60.0):
        assert ended == ["the other"]
    other.join()


def test_a_file_is_claimed_beside_it(tmp_path: Path) -> None:
    with claimed(tmp_path / "a.npz", tmp_path / ".a.npz.in-use"):
        assert [path.name for path in tmp_path.iterdir()] == [".a.npz.in-use"]
        with claimed(tmp_path / "b.npz", tmp_path / ".b.npz.in-use"):
            pass


def test_it_ends_with_its_process_however_that_ends(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"mine\n"
        with pytest.raises(InUse, match=f"process {process.pid} on"), claimed(tmp_path):
            pass
        process.send_signal(signal.SIGKILL)
    assert (tmp_path / ".in-use").exists()
    with claimed(tmp_path):
        pass
    assert not (tmp_path / ".in-use").exists()


def test_what_an_ended_process_of_this_machine_left_is_taken_over(
    tmp_path: Path, locks: bool
) -> None:
    left_by(tmp_path, platform.node(), gone())
    with claimed(tmp_path):
        assert Holder.read(tmp_path / ".in-use").pid == os.getpid()


def test_without_locks_a_running_process_of_this_machine_is_asked_for(
    tmp_path: Path, locks: bool
) -> None:
    left_by(tmp_path, platform.node(), os.getppid())
    if locks:  # it would have locked it
        with claimed(tmp_path):
            return
    with pytest.raises(InUse, match=f"process {os.getppid()}"), claimed(tmp_path):
        pass


@pytest.mark.parametrize("alive", [True, False])
def test_one_on_another_machine_is_given_time_to_touch_its_file(
    tmp_path: Path, locks: bool, alive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "PATIENCE", 0.3 if not alive else 60.0)
    left_by(tmp_path, "elsewhere", 1)
    if not alive:
        with claimed(tmp_path):
            assert Holder.read(tmp_path / ".in-use").host == platform.node()
        return
    ended = threading.Event()

    def touch() -> None:
        while not ended.wait(0.05):
            os.utime(tmp_path / ".in-use")

    toucher = threading.Thread(target=touch)
    toucher.start()
    try:
        with pytest.raises(InUse, match="process 1 on elsewhere"), claimed(tmp_path):
            pass
    finally:
        ended.set()
        toucher.join()


def test_one_on_another_machine_that_ended_long_ago_is_not_waited_for(
    tmp_path: Path, locks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "PATIENCE", 1e6)
    left_by(tmp_path, "elsewhere", 1)
    os.utime(tmp_path / ".in-use", (0, 0))
    with claimed(tmp_path):
        assert Holder.read(tmp_path / ".in-use").host == platform.node()


def test_as_long_as_it_lasts_its_file_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "TOUCHED_EVERY", 0.01)
    with claimed(tmp_path):
        first = claims._touched(tmp_path / ".in-use")
        until = time.monotonic() + 30.0
        while claims._touched(tmp_path / ".in-use") == first and time.monotonic() < until:
            time.sleep(0.01)
        assert claims._touched(tmp_path / ".in-use") != first


def test_without_locks_the_last_word_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: object, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(claims.time, "sleep", lambda seconds: left_by(tmp_path, "elsewhere", 7))
    with pytest.raises(InUse, match="process 7 on elsewhere"), claimed(tmp_path):
        pass


@pytest.mark.parametrize("text", ["", "{}", "[1]", "nonsense", '{"pid": "x"}'])
def test_a_file_that_says_nothing_is_nobodys(tmp_path: Path, text: str) -> None:
    (tmp_path / ".in-use").write_text(text)
    with claimed(tmp_path):
        assert Holder.read(tmp_path / ".in-use").pid == os.getpid()


def test_a_holder_is_printed_on_one_line() -> None:
    shown = str(Holder(1, "a\nb", "\x1b[31m", "today", ""))
    assert shown.isprintable()


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GoatError, match="file is not a folder; choose"), claimed(tmp_path / "file"):
        pass
