"""Options of commands that act in an environment of the user's own."""

import json
import sys
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from goatrl.evaluation.worlds import TIMEOUT, Environment, Success
from goatrl.types import GoatError

EnvironmentArgs = Annotated[
    str | None,
    arg(
        metavar="JSON",
        help="Arguments of the environment's constructor, as a JSON object: '{\"size\": 3}'.",
    ),
]
Horizon = Annotated[
    int | None,
    arg(
        metavar="N",
        help="The most actions of an episode in the environment; as many as in the data if "
        "omitted. The environment may end it earlier.",
    ),
]
SuccessRule = Annotated[
    Success,
    arg(
        help="What counts as success in the environment at the last step: a goal within the goal "
        "threshold, or the environment's own flag, info['success'] or info['is_success'].",
    ),
]

Timeout = Annotated[
    float | None,
    arg(
        metavar="SECONDS",
        help="The time that a reset or a step of the environment may take before it is stopped; "
        "600 if omitted.",
    ),
]


def environment_of(
    name: str | None,
    arguments: str | None = None,
    horizon: int | None = None,
    success: Success = "threshold",
    timeout: float | None = None,
) -> Environment | None:
    """The environment that the options name, if they name one. It may be in the current folder."""
    if name is None:
        given = (arguments, horizon, timeout)
        if success != "threshold" or any(each is not None for each in given):
            raise GoatError(
                "--environment-args, --horizon, --success and --timeout describe an environment; "
                "name it with --environment"
            )
        return None
    here = str(Path.cwd())
    if here not in sys.path:  # the command is not in the folder of the user's modules
        sys.path.append(here)
    limit = TIMEOUT if timeout is None else timeout
    return Environment(name, _arguments(arguments), horizon, success, limit)


def _arguments(text: str | None) -> dict[str, object]:
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise GoatError(f"--environment-args is not JSON ({error}): {text}") from None
    if not isinstance(found, dict):
        raise GoatError(f'--environment-args must be a JSON object like {{"size": 3}}, not {text}')
    return found
