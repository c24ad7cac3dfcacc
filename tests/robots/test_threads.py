"""Threads that simulate: they give way, and nobody else does."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

from goatrl.robots.threads import NICENESS, lower_thread_priority


def niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_only_the_thread_that_steps_aside_becomes_nicer() -> None:
    mine = niceness()
    with (
        ThreadPoolExecutor(1, initializer=lower_thread_priority) as aside,
        ThreadPoolExecutor(1) as other,
    ):
        assert aside.submit(niceness).result() == max(NICENESS, mine)
        assert other.submit(niceness).result() == mine
    assert niceness() == mine


def test_a_thread_that_is_nicer_already_stays_so() -> None:
    def nicer() -> int:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        lower_thread_priority()
        return niceness()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(nicer).result() == 19
