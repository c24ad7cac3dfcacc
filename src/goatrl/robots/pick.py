"""Fetch picks a block up and holds it."""

from goatrl.robots.family import ExpertTraining, Finetuning
from goatrl.robots.fetch import OBJECT_LAYOUT, OBJECT_SPEC, OBJECT_SYMMETRY, PHYSICS, FetchFamily
from goatrl.robots.mujoco import View

PICK = FetchFamily(
    "pick",
    OBJECT_SPEC,
    "fetch.pick_and_place:MujocoFetchPickAndPlaceEnv",
    View((1.32, 0.75, 0.6), 1.25, 155.0, -25.0),
    gripper=(1.3419322596746923, 0.749100371108664, 0.5347228411660563),
    object_height=0.4246997490299934,
    table=((1.05, 0.4, 0.0), (1.55, 1.1, 0.4)),
    physics=PHYSICS,
    unit="m",
    expert=ExpertTraining(300, cost=True),
    finetuning=Finetuning(10),
    layout=OBJECT_LAYOUT,
    symmetry=OBJECT_SYMMETRY,
)
