"""Where checkouts may lie. Pure but for links, which are followed.

The agent reads a checkout and nothing else, by rules that name its path: so the path has no
character that a rule would take for something else, and the data folder is apart from it.
"""

import re
from os.path import realpath
from pathlib import Path

_UNSAFE = re.compile(r"[^\w./+@=-]")


def contains_problem(data_dir: Path, checkouts: Path) -> str | None:
    """Why the two folders cannot be used together, if they cannot."""
    if overlap(data_dir, checkouts):
        return "it and RETRIAGE_DATA_DIR must not lie in one another: the agent reads what is in it"
    return None


def overlap(one: Path, other: Path) -> bool:
    """Whether one folder is the other, or lies in it. They need not exist."""
    one, other = Path(realpath(one)), Path(realpath(other))
    return one.is_relative_to(other) or other.is_relative_to(one)


def unsafe_path(folder: Path) -> str | None:
    """Why a folder cannot stand in the agent's rules, if it cannot."""
    if _UNSAFE.search(realpath(folder)):
        return (
            "its path may hold letters, digits and . / _ + @ = - alone: the agent's rules name it"
        )
    return None
