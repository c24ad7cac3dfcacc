"""How long each algorithm of the paper trains on FetchPush: 40,000 updates of five seeds, from the time of some; no compilation.

python benchmarks/training_time.py [UPDATES]
"""

import itertools
import sys
import time

import jax
import numpy as np

from goatrl import algorithms, cli, tasks
from goatrl.benchmark import suites
from goatrl.train import default_interval, train
from goatrl.types import make_episodes

group = tasks.get("push-left-right")
spec, settings = group.spec, group.settings
interval = default_interval(settings.updates, settings.target_every)  # that of `goat bench`: what it has compiled serves here
chunks = max((int(sys.argv[1]) if len(sys.argv) > 1 else 4_000) // interval, 1)
cli.keep_compiled_programs()
generator = np.random.default_rng(0)  # times do not depend on what the numbers are
shapes = [(5_000, spec.horizon + 1, spec.observation_dim), (5_000, spec.horizon + 1, 3), (5_000, spec.horizon, 4), (5_000, 3)]
episodes = make_episodes(*(generator.uniform(-1, 1, shape) for shape in shapes))
print(f"{jax.devices()[0].device_kind}; seconds for {settings.updates:,} updates of 5 seeds, from {chunks * interval:,}")
for column in suites.get("paper").columns:
    members = [(algorithms.get(column.algorithm).build(settings), seed) for seed in range(5)]
    training = train(members, spec, episodes, updates=settings.updates, batch_size=settings.batch_size, interval=interval)
    jax.block_until_ready(next(training).state)
    started = time.perf_counter()
    steps = [jax.block_until_ready(chunk.state).step for chunk in itertools.islice(training, chunks)]
    seconds = time.perf_counter() - started
    print(f"{column.label:12} {settings.updates / (len(steps) * interval) * seconds:8.1f}", flush=True)
