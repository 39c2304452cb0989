"""Which names of a commit are written to disk.

A name must mean the same to git, to every file system, to the agent's path rules and to a person
who reads it in a report. Sources: git's own ``verify_path`` with ``core.protectNTFS`` and
``core.protectHFS`` (``.git`` in any case, ``git~1``, trailing dots and spaces, characters that HFS+
ignores), and the agent's gate (no edge white space, no control character, no backslash).
"""

import unicodedata
from typing import Final

from worker.checkout.bounds import LeftOut

LONGEST_PATH_BYTES: Final = 1024
LONGEST_NAME_BYTES: Final = 255
MOST_PARTS: Final = 64
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control and format characters (directions, joiners, what HFS+ ignores), line separators."""
_GIT: Final = frozenset({".git", "git~1"})
_EXAMPLES: Final = (".example", ".sample", ".template", ".dist")


def unfit(path: bytes) -> LeftOut | None:
    """Why a path of a commit is not written; None where it is."""
    try:
        text = path.decode()
    except UnicodeDecodeError:
        return LeftOut.ODD_NAME
    parts = text.split("/")
    if len(path) > LONGEST_PATH_BYTES or len(parts) > MOST_PARTS:
        return LeftOut.ODD_NAME
    if any(_is_odd(part) for part in parts):
        return LeftOut.ODD_NAME
    return LeftOut.ENV_FILE if any(_is_env_file(part) for part in parts) else None


def _is_odd(part: str) -> bool:
    if part in ("", ".", "..") or len(part.encode()) > LONGEST_NAME_BYTES:
        return True
    if part != part.strip() or "\\" in part:
        return True
    if any(unicodedata.category(each) in _UNSEEN for each in part):
        return True
    return unicodedata.normalize("NFKC", part).casefold().rstrip(". ") in _GIT


def _is_env_file(part: str) -> bool:
    name = part.casefold()
    if name in (".env", ".envrc"):
        return True
    return name.startswith(".env.") and not name.endswith(_EXAMPLES)
