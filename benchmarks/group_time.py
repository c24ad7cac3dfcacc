"""Where the time of one task group goes: its dataset, unless it is made already, five seeds of
GOAT, all tasks judged.

python benchmarks/group_time.py [GROUP] [UPDATES]
"""

import sys
import time

import jax

from goatrl import algorithms, tasks
from goatrl.data.cache import cached, make_cached, of_group
from goatrl.evaluation.episodes import evaluate
from goatrl.training.offline import train

group = tasks.get(sys.argv[1] if len(sys.argv) > 1 else "push-left-right")
updates = int(sys.argv[2]) if len(sys.argv) > 2 else group.settings.updates
members = [(algorithms.get("goat").build(group.settings), seed) for seed in range(5)]
interval = updates // 10
print(f"{group.label}, {updates} updates of 5 seeds, {jax.devices()[0].device_kind}")

clock = time.perf_counter()


def lap(what: str) -> None:
    global clock
    now = time.perf_counter()
    print(f"{what:34} {now - clock:7.1f} s", flush=True)
    clock = now


if group.collection is not None and not cached(group).exists():
    make_cached(group)
    lap("dataset")
episodes = of_group(group)
lap("dataset, read from the cache")
chunks = train(
    members,
    group.spec,
    episodes,
    updates=updates,
    batch_size=group.settings.batch_size,
    interval=interval,
)
chunk = next(chunks)
lap("compilation and first tenth")
for chunk in chunks:
    jax.block_until_ready(chunk.state)
lap("the other nine tenths of training")
evaluate(members, chunk.state, group)
lap(f"judging, {len(group.tasks)} tasks")
