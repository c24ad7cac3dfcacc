"""goatrl: which offline goal-conditioned agent reaches goals that its data never showed?

    import goatrl

    data = goatrl.load_dataset("pointreach-non-expert-10")
    agents = goatrl.train("goat", data, seeds=3)
    print(goatrl.tabulate(goatrl.evaluate(agents)))

Importing it registers the robots' tasks with Gymnasium: gymnasium.make("goatrl/PushRight2Left-v0").
"""

__version__ = "0.1.0"

from goatrl.algorithms import register as register_algorithm
from goatrl.evaluation.summary import tabulate
from goatrl.experiments.export import export_policy
from goatrl.experiments.loading import load as load_agents
from goatrl.experiments.loading import load_policy
from goatrl.runs.api import evaluate, load_dataset, make_dataset, save_dataset, train
from goatrl.sim.registration import register_environments
from goatrl.tasks import register_task_group
from goatrl.types import GoatError

__all__ = [
    "GoatError",
    "evaluate",
    "export_policy",
    "load_agents",
    "load_dataset",
    "load_policy",
    "make_dataset",
    "register_algorithm",
    "register_task_group",
    "save_dataset",
    "tabulate",
    "train",
]

register_environments()
