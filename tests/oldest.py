"""Prints the oldest versions that a pyproject.toml allows, as constraints for pip.

A lower bound such as ``numpy>=2.0`` becomes ``numpy==2.0.*``: the newest correction of the oldest version.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

BOUND = re.compile(r"(?P<name>[\w.-]+)(\[[\w,-]+\])?>=(?P<version>\d+(\.\d+)*)")


def constraints(project: dict[str, Any]) -> list[str]:
    """One line for each dependency, those of the extras included."""
    extras = project.get("optional-dependencies", {}).values()
    found = set()
    for requirement in [*project["dependencies"], *(one for extra in extras for one in extra)]:
        if requirement.startswith(f"{project['name']}["):
            continue
        bound = BOUND.fullmatch(requirement)
        if bound is None:
            raise ValueError(f"{requirement!r} must have the form name>=version")
        found.add(f"{bound['name']}=={bound['version']}.*")
    return sorted(found)


if __name__ == "__main__":
    print("\n".join(constraints(tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["project"])))
