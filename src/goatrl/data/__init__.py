"""What was seen: datasets made, imported, stored and loaded."""

from goatrl.data.cache import MissingDataset, make, of_group
from goatrl.data.storage import action_bounds, check_name, goal_threshold, load, location, save

__all__ = [
    "MissingDataset",
    "action_bounds",
    "check_name",
    "goal_threshold",
    "load",
    "location",
    "make",
    "of_group",
    "save",
]
