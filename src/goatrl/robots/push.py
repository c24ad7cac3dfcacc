"""Fetch pushes a block with its fingers shut."""

from typing import Any

from goatrl.robots.family import ExpertTraining, Finetuning
from goatrl.robots.fetch import OBJECT_LAYOUT, OBJECT_SPEC, OBJECT_SYMMETRY, PHYSICS, FetchFamily
from goatrl.robots.mujoco import View


def enlarge_table(spec: Any) -> None:
    """Far objects and goals of Push lie on the table, as in the paper. Its new edge would stand 28
    mm inside the robot's base.
    """
    spec.body("table0").geoms[0].size[:2] = 0.35, 0.35
    for part in ("robot0:base_link", "robot0:laser_link"):
        spec.add_exclude(bodyname1="table0", bodyname2=part)


PUSH = FetchFamily(
    "push",
    OBJECT_SPEC,
    "fetch.push:MujocoFetchPushEnv",
    View((1.35, 0.75, 0.42), 1.05, 155.0, -45.0),
    gripper=(1.3478694839072305, 0.7489494765940331, 0.4136377287372431),
    object_height=0.4246997490299934,
    table=((0.95, 0.4, 0.0), (1.65, 1.1, 0.4)),
    whole_table=True,
    change=enlarge_table,
    physics=PHYSICS,
    unit="m",
    expert=ExpertTraining(170),
    finetuning=Finetuning(20),
    layout=OBJECT_LAYOUT,
    symmetry=OBJECT_SYMMETRY,
)
