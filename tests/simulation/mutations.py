"""The mutation check: each guard in turn is switched off in a copy of the program, and the suite
must notice.

A copy, because nothing of the program has a switch for it. Where a guard stands in a script of the
ledger too, that is switched off in a second copy, and the suite of the ledger must notice.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.simulation.guards import GUARDS, Edit, Guard
from tests.simulation.telling import JOBS, Violation

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("triage", "ledger", "worker", "bot", "process", "cli", "sandbox", "tests")
LAST: Final = "test_differential.py"
"""Of the ledger's suite: it notices everything, and looks long for the shortest way to show it."""

MOST_SECONDS: Final = 600
"""Of one hunt; one that takes longer found no end (I7)."""

_NAMED = re.compile(r"\b(I[1-7]|P)\b:")


@dataclass(frozen=True, slots=True)
class Caught:
    """What noticed that a guard was off. ``invariant`` is the one that was named, else the one that
    the guard is there for; ``by`` the story, ``script`` what noticed it in the real ledger's
    scripts. ``by`` and ``script`` are empty where nothing did, ``script`` also where the guard has
    none there."""

    guard: str
    invariant: str
    by: str
    what: str
    script: str = ""
    has_script: bool = False

    @property
    def caught(self) -> bool:
        """Whether everything noticed."""
        return bool(self.by) and (bool(self.script) or not self.has_script)


class StaleEditError(Exception):
    """A guard's text does not stand exactly once where it should."""


def mutate(guards: Iterable[Guard] = GUARDS, jobs: int = JOBS) -> list[Caught]:
    """Switch off each of these, some at once. Raises StaleEditError."""
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(_switch_off, guards))


def _switch_off(guard: Guard) -> Caught:
    sys.stderr.write(f"simulate: without {guard.name}\n")
    found = _hunted(guard.edits, ["tests.simulation.hunt", *guard.stories])
    script = _suite_fails(guard.script) if guard.script else ""
    named = _NAMED.search(found.what)
    return Caught(
        guard=guard.name,
        invariant=named[1] if named else guard.invariant,
        by=found.where,
        what=found.what,
        script=script,
        has_script=bool(guard.script),
    )


def _hunted(edits: Sequence[Edit], module: list[str]) -> Violation:
    with tempfile.TemporaryDirectory() as folder:
        copied(Path(folder), edits)
        try:
            done = _run(Path(folder), ["-m", *module])
        except subprocess.TimeoutExpired:
            return Violation("the hunt", f"I7: no end within {MOST_SECONDS} s")
    if done.returncode:
        return Violation("the hunt", f"it broke: {done.stderr.strip().splitlines()[-1]}")
    told = json.loads(done.stdout.splitlines()[-1])
    return Violation(told["where"], told["what"])


def _suite_fails(edits: Sequence[Edit]) -> str:
    """The first test of the ledger's suite that notices."""
    suite = sorted((ROOT / "tests/ledger").glob("test_*.py"), key=lambda path: path.name == LAST)
    with tempfile.TemporaryDirectory() as folder:
        copied(Path(folder), edits)
        code = (
            "from tests.simulation.hunt import run_tests\n"
            f"found = run_tests({[str(path.relative_to(ROOT)) for path in suite]!r})\n"
            "print(found.where if found else '')"
        )
        try:
            done = _run(Path(folder), ["-c", code])
        except subprocess.TimeoutExpired:
            return f"no end within {MOST_SECONDS} s"
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""


def _run(folder: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=MOST_SECONDS,
    )


def copied(folder: Path, edits: Iterable[Edit]) -> None:
    """Copy the program there, with these edits. Raises StaleEditError."""
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__", "node_modules")
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for edit in edits:
        path = folder / edit.path
        text = path.read_text()
        if text.count(edit.old) != 1:
            raise StaleEditError(f"{edit.path} has not exactly one {edit.old!r}")
        path.write_text(text.replace(edit.old, edit.new))
