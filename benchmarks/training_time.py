"""How long each algorithm of the paper trains on FetchPush: 40,000 updates of five seeds, from the time of some.

python benchmarks/training_time.py [UPDATES]
"""

import sys
import time

import jax
import numpy as np

from goatrl import algorithms, tasks
from goatrl.benchmark import suites
from goatrl.train import train
from goatrl.types import make_episodes

group = tasks.get("push-left-right")
spec, settings = group.spec, group.settings
measured = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
generator = np.random.default_rng(0)  # times do not depend on what the numbers are
shapes = [(5_000, spec.horizon + 1, spec.observation_dim), (5_000, spec.horizon + 1, 3), (5_000, spec.horizon, 4), (5_000, 3)]
episodes = make_episodes(*(generator.uniform(-1, 1, shape) for shape in shapes))
print(f"{jax.devices()[0].device_kind}; seconds for {settings.updates:,} updates of 5 seeds, of {measured:,} measured")
for column in suites.get("paper").columns:
    members = [(algorithms.get(column.algorithm).build(settings), seed) for seed in range(5)]
    chunks = train(members, spec, episodes, updates=2 * measured, batch_size=settings.batch_size, interval=measured)
    started = time.perf_counter()
    jax.block_until_ready(next(chunks).state)
    compiled = time.perf_counter()
    jax.block_until_ready(next(chunks).state)
    seconds = time.perf_counter() - compiled
    print(
        f"{column.label:12} {settings.updates / measured * seconds:8.1f}   compilation {compiled - started - seconds:5.1f}",
        flush=True,
    )
