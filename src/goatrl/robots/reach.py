"""Fetch reaches with its gripper."""

from goatrl.robots.family import ExpertTraining, Finetuning
from goatrl.robots.fetch import PHYSICS, REACH_LAYOUT, REACH_SPEC, REACH_SYMMETRY, FetchFamily
from goatrl.robots.mujoco import View

REACH = FetchFamily(
    "reach",
    REACH_SPEC,
    "fetch.reach:MujocoFetchReachEnv",
    View((1.32, 0.75, 0.5), 1.1, 155.0, -30.0),
    gripper=(1.3418322596946919, 0.749100384039659, 0.5347228411528089),
    physics=PHYSICS,
    unit="m",
    expert=ExpertTraining(3),
    finetuning=Finetuning(20),
    layout=REACH_LAYOUT,
    symmetry=REACH_SYMMETRY,
)
