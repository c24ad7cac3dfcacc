"""The evidence of docs/inputs.md: where a puck ends that is hit through a symmetry."""

import json

import numpy as np

from goatrl import tasks
from goatrl.learn import symmetry
from goatrl.robots.fetch import FetchFamily
from goatrl.tasks import draw_mix
from turned import OBJECT, by_expert, errors


def test_a_puck_that_is_hit_again_ends_where_it_did() -> None:
    group = tasks.get("slide-left-right")
    family, episodes = group.family, 4
    assert isinstance(family, FetchFamily)
    seen, actions = by_expert(family, *draw_mix(group.tasks[:1], (78,), episodes))
    moved = np.linalg.norm((seen[-1] - seen[0])[:, OBJECT], axis=1)
    assert (moved > 0.05).all(), "they are hit"
    _, turning = symmetry.read(json.dumps(family.symmetry), family.spec)
    amount = np.full((episodes, 1), 0.2)
    assert errors(family, turning, 0 * amount, seen, actions).max() < 1e-6
    turned = errors(family, turning, amount, seen, actions)
    # Without turned actions, all would go where they went before.
    straight = errors(family, turning.otherwise("action", 0), amount, seen, actions)
    assert turned.mean() < 0.6 * straight.mean()
