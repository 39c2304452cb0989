"""The measurements run, and say what they should; how fast anything is, nobody asks here."""

import json
import subprocess
import sys
from typing import Any


def bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """What ``script/bench`` does after the environment is there."""
    return subprocess.run(
        [sys.executable, "-m", "tests.bench", *arguments],
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )


def measured(part: str) -> dict[str, Any]:
    """The figures of a part, with small counts."""
    ended = bench("--quick", part)
    assert ended.returncode == 0, ended.stderr
    figures: dict[str, Any] = json.loads(ended.stdout)
    assert set(figures) == {"machine", part}
    assert figures["machine"]["quick"]
    found: dict[str, Any] = figures[part]
    return found


def test_a_part_that_there_is_not() -> None:
    """One line, with those that there are; exit code 2."""
    ended = bench("start", "nothing")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("bench: no part nothing; there are receiver, ")
    assert ended.stderr.count("\n") == 1


def test_start() -> None:
    """Seconds of each start, and what each process holds."""
    figures = measured("start")
    for name in ("help_seconds", "python_seconds", "worker_import_seconds"):
        assert 0 < figures[name]["least"] <= figures[name]["median"] <= figures[name]["most"]
    assert set(figures["idle_memory"]) == {"web", "worker", "clock"}
    assert all(held["rss_kib"] > 1024 for held in figures["idle_memory"].values())
