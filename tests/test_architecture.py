"""Data flows one way: a room imports only from rooms above it, and learning code knows no task by
name.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import goatrl
from goatrl import tasks

SOURCE = Path(goatrl.__file__).parent
ORDER = [
    "types",
    "episodes",
    "disk",
    "robots",  # a robot exists before there is anything for it to reach
    "tasks",
    "sim",  # tasks as Gymnasium environments
    "data",
    "learn",
    "algorithms",
    "training",
    "evaluation",
    "runs",
    "experiments",  # writes the records that `report` reads
    "report",
    "cli",
]
MODULES = sorted(SOURCE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "goatrl":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("goatrl."):
            found.add(node.module.split(".")[1])
    return found & set(ORDER)


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if room(path) in ORDER],
    ids=lambda path: str(path.relative_to(SOURCE)),
)
def test_imports_go_upwards_only(path: Path) -> None:
    mine = ORDER.index(room(path))
    below = {name for name in imported_rooms(path) if ORDER.index(name) > mine}
    assert not below, f"{path} imports {below}, which stand below it"


def test_every_room_is_in_the_order() -> None:
    assert {room(path) for path in MODULES} - set(ORDER) == {"__init__", "__main__"}


def test_learning_knows_no_task() -> None:
    words = {*tasks.groups(), "pointreach", "fetch", "handreach", "shadow", "mujoco"}
    for path in [*(SOURCE / "learn").rglob("*.py"), SOURCE / "training" / "offline.py"]:
        text = path.read_text().lower()
        assert not [word for word in words if word in text], f"{path} names a task"


def test_no_pickle_is_loaded_but_by_the_array_reader_and_between_our_own_processes() -> None:
    allowed = {SOURCE / "data" / "goat_pickle.py", SOURCE / "robots" / "workers.py"}
    for path in MODULES:
        imports = [
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import)
        ]
        imports_pickle = any(alias.name == "pickle" for node in imports for alias in node.names)
        assert imports_pickle == (path in allowed)
        assert "allow_pickle=True" not in path.read_text()


def test_nothing_but_the_robots_asks_which_robot_it_is() -> None:
    for path in MODULES:
        if room(path) == "robots":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            compared = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
            keys = [node.slice] if isinstance(node, ast.Subscript) else []
            asked = [ast.unparse(each) for each in (*compared, *keys)]
            assert not [text for text in asked if text.endswith("family.name")], (
                f"{path}:{node.lineno}"
            )


def test_pointreach_does_not_pay_for_the_simulator() -> None:
    code = (
        "import sys\n"
        "from goatrl import data, tasks\n"
        "data.of_group(tasks.get('pointreach-expert-10'))\n"
        "print('mujoco' in sys.modules)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


# Calls that write, and the modules that may: whatever else is written goes through them, so that it
# is whole, lasts, and is tested at every step.
WRITES = {
    "fsync",
    "mkdir",
    "NamedTemporaryFile",
    "rename",
    "replace",
    "rmtree",
    "touch",
    "unlink",
    "write_bytes",
}
WRITERS = {
    "disk/files.py": WRITES,
    "disk/claims.py": {"fsync", "unlink"},
    "data/minari.py": {"mkdir", "rmtree"},  # HDF5 writes its files itself, in a folder aside
    "runs/numpy_policy.py": {"write_bytes"},  # a trial that nobody keeps
}


def test_everything_is_written_through_a_few_functions() -> None:
    for path in MODULES:
        allowed = WRITERS.get(str(path.relative_to(SOURCE)), set())
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = node.func.value
                name = owner.id if isinstance(owner, ast.Name) else ""
                call = node.func.attr
                if call == "replace" and name != "os":
                    continue  # of texts and dataclasses
                if call == "open" and name != "os":
                    modes = [each.value for each in node.args if isinstance(each, ast.Constant)]
                    assert not any(set("wax+") & set(str(each)) for each in modes), path
                if call in WRITES:
                    assert call in allowed, f"{path}:{node.lineno} writes by {call}"
