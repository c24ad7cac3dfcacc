"""Writes reference.md from the docstrings of what `import goatrl` offers.

python docs/make_reference.py
"""

from __future__ import annotations

import inspect
from pathlib import Path

import goatrl

PAGE = Path(__file__).with_name("reference.md")
HEAD = """# Reference: the package from Python

Everything that `import goatrl` offers. [examples/](../examples) has scripts that use it, and
[own-algorithm.md](own-algorithm.md) says how to write an algorithm.
"""


def page() -> str:
    return "\n".join([HEAD, *map(section, goatrl.__all__)])


def section(name: str) -> str:
    """A heading, the signature, and the docstring, whose `Args:` and `Returns:` become lists."""
    thing = getattr(goatrl, name)
    signature = "" if inspect.isclass(thing) else str(inspect.signature(thing)).replace("'", "")
    lines = [f"## {name}", "", "```text", f"goatrl.{name}{_wrapped(signature)}", "```", ""]
    listing = False
    for line in inspect.cleandoc(thing.__doc__ or "").splitlines():
        head, colon, rest = line.strip().partition(": ")
        if line in ("Args:", "Returns:"):
            listing = line == "Args:"
            lines += [f"**{line[:-1]}**", ""]
        elif listing and line.startswith("    ") and not line.startswith("     ") and colon:
            lines.append(f"- `{head}`: {rest}")
        else:
            lines.append(f"  {line.strip()}" if listing and line else line.strip())
    return "\n".join([*lines, ""])


def _wrapped(signature: str) -> str:
    """One parameter a line where it would be long."""
    if len(signature) < 70:
        return signature
    inside, _, returned = signature[1:].rpartition(") -> ")
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(inside):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append(inside[start:place].strip())
            start = place + 1
    parts.append(inside[start:].strip())
    return "(\n    " + ",\n    ".join(parts) + f"\n) -> {returned}"


if __name__ == "__main__":
    PAGE.write_text(page())
