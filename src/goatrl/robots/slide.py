"""Fetch hits a puck, which slides out of its reach."""

from goatrl.robots.family import ExpertTraining, Finetuning
from goatrl.robots.fetch import (
    OBJECT_LAYOUT,
    OBJECT_SPEC,
    OBJECT_SYMMETRY,
    PHYSICS,
    FetchFamily,
    turned,
)
from goatrl.robots.mujoco import View

GRIPPER = (0.9957062742649534, 0.7489068402660999, 0.41268599591551086)

SLIDE = FetchFamily(
    "slide",
    OBJECT_SPEC,
    "fetch.slide:MujocoFetchSlideEnv",
    View((1.25, 0.75, 0.42), 1.3, 155.0, -45.0),
    gripper=GRIPPER,
    object_height=0.41401894352054414,
    physics=PHYSICS,
    unit="m",
    expert=ExpertTraining(390, updates=400, cost=True),
    finetuning=Finetuning(20),
    layout=OBJECT_LAYOUT,
    # The puck is round; fingers are not, so that a hit from another side sends it elsewhere
    # (docs/inputs.md has by how much).
    symmetry=OBJECT_SYMMETRY
    | turned([0, 3], [6, 14, 17, 20], angles=[13], around=GRIPPER[:2], by=0.4),
)
