"""Threads that simulate give way to the one that keeps a GPU busy."""

from __future__ import annotations

import os
import threading

NICENESS = 10  # of 19; a thread with none beside it still gets a whole core


def lower_thread_priority() -> None:
    """Lower the priority of the calling thread: training waits for a few microseconds of a core
    after every kernel.
    """
    thread = threading.get_native_id()
    # Nobody but root may raise a priority, and the whole process may already have a lower one.
    os.setpriority(os.PRIO_PROCESS, thread, max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))
