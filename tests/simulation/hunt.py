"""``python -m tests.simulation.hunt [STORY…]``: what does not hold in this copy of the program.

The cells of the matrix first, then the named tests, then random schedules, up to the first thing
that does not hold. Prints one JSON object: ``where`` and ``what``, both empty where all holds.
"""

import json
import re
import subprocess
import sys
from typing import Final

from tests.simulation.schedules import run_schedules
from tests.simulation.telling import Violation, tell_cells

SCHEDULES: Final = 400
"""How many are run before a guard counts as not missed."""

SEED: Final = 1

_FAILED = re.compile(r"^FAILED (\S+?)(?: - (.*))?$", re.MULTILINE)


def hunt(stories: list[str]) -> Violation | None:
    """The first thing found that does not hold."""
    cells = tell_cells(jobs=1).violations
    if cells:
        return cells[0]
    paths = [story if "/" in story else f"tests/simulation/{story}" for story in stories]
    failed = run_tests(paths) if paths else None
    if failed is not None:
        return failed
    schedules = run_schedules(SCHEDULES, SEED, jobs=1, stop_at_first=True).violations
    if not schedules:
        return None
    first = schedules[0]
    text = str(first["text"]).splitlines()[0]
    return Violation(f"schedule of seed {first['seed']}", f"{first['invariant']}: {text}")


def run_tests(paths: list[str]) -> Violation | None:
    """The first test that fails in these files."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-rf", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *paths], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return None
    found = _FAILED.search(done.stdout)
    if found is None:
        return Violation(paths[0], f"pytest ended with {done.returncode}: {done.stdout[-300:]}")
    return Violation(found[1], found[2] or "it failed")


def main() -> int:
    """Hunt, and print what was found."""
    found = hunt(sys.argv[1:])
    told = {"where": found.where, "what": found.what} if found else {"where": "", "what": ""}
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
