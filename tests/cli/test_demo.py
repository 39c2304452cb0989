"""The demo as a stranger runs it: what it shows, how it ends, and that nothing of it stays."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.issues_csv import COLUMNS, DEMO, load

STATUSES = {
    "completed",
    "no-change",
    "failed-before-write",
    "failed-after-write",
    "needs-review",
}
ISSUES = 25


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the demo has its own folder; empty afterwards, and no process knows of it."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    yield temporary
    assert until(lambda: not processes_of(temporary)), processes_of(temporary)
    assert until(lambda: not list(temporary.iterdir())), list(temporary.iterdir())


def demo(folder: Path, *options: str) -> "subprocess.Popen[str]":
    """``retriage demo``, among settings that must not reach it."""
    strays = {
        "TMPDIR": str(folder),
        "REDIS_URL": "redis://127.0.0.1:1",
        "GITHUB_API_URL": "https://github.invalid",
        "ANTHROPIC_BASE_URL": "https://model.invalid",
        "MARKER_KEYS": "stray",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "cli", "demo", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **strays},
    )


def told(folder: Path, *options: str) -> Any:
    """The one object of ``retriage demo --json``, which ended well."""
    process = demo(folder, "--json", *options)
    out, progress = process.communicate(timeout=100)
    assert process.returncode == 0, progress
    return json.loads(out)


@pytest.mark.timeout(120)
def test_the_story(folder: Path) -> None:
    """A run in each status, no duplicate, no incident, nothing written twice; within a minute."""
    began = time.monotonic()
    seen = told(folder)
    assert time.monotonic() - began < 60
    assert set(seen["statuses"]) == STATUSES
    assert {run["status"] for run in seen["runs"]} == STATUSES
    counted = ("duplicates", "incidents", "writes_again", "workers_refused", "comments_after_kill")
    assert [seen[name] for name in counted] == [0, 0, 0, 1, 1]
    assert seen["github_requests_per_issue"] > 2
    assert seen["failed_step"] is None
    cut_off = next(run for run in seen["runs"] if run["repository"] == "acme/search")
    assert (cut_off["status"], cut_off["attempts"]) == ("completed", 2)


@pytest.mark.timeout(120)
def test_issues_of_a_file(folder: Path, tmp_path: Path) -> None:
    """A window of a file's issues keeps to the bounds, and has nothing to write the second time."""
    file = tmp_path / "issues.csv"
    rows = load(DEMO, "acme/web")
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS)
        writer.writeheader()
        for number in range(ISSUES):
            row = rows[number % len(rows)]
            title = f"{row.title} ({number})"
            writer.writerow(
                {
                    "repo": "octo/board" if number else "octo/other",
                    "created_at": row.created_at,
                    "label": row.label,
                    "title": title,
                    "body": row.body,
                }
            )
    seen = told(folder, "--issues", str(file), "--repo", "octo/board")
    assert seen["issues"] == ISSUES - 1
    assert seen["issues_triaged"] >= ISSUES // 2
    assert seen["github_requests"] <= 2 * (ISSUES - 1) + 4 + 15 == seen["github_requests_bound"]
    assert (seen["agent_sessions"], seen["writes_again"], seen["duplicates"]) == (1, 0, 0)
    assert seen["statuses"] == {"completed": 1}


@pytest.mark.timeout(120)
def test_four_nights(folder: Path) -> None:
    """A baseline, a session that goes on elsewhere, one that forgets, and a new beginning."""
    seen = told(folder, "--job", "nightly-repo-review")
    assert seen["statuses"] == {"completed": 4}
    assert seen["resume_link"] == (
        "same_session=true prior_review_id_echoed=true recalled_findings=3/3 current_findings=3"
    )
    assert seen["second_night"] == {
        "new": 1,
        "still there": 2,
        "not seen this time": 0,
        "resolved": 1,
    }
    assert [run["writes"] for run in seen["runs"]] == [1, 1, 1, 1]
    counted = ("issues", "agent_sessions", "duplicates", "incidents", "writes_again")
    assert [seen[name] for name in counted] == [1, 2, 0, 0, 0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_stays(folder: Path, number: signal.Signals) -> None:
    """Ctrl-C on the way, and even SIGKILL: the ``folder`` fixture looks for what is left."""
    process = demo(folder, "--keep")
    assert until(lambda: len(list(folder.glob("*/logs/worker-*.log"))) == 3)
    assert processes_of(folder)
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == (130 if number is signal.SIGINT else -number)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--repo", "acme/web"], "--issues CSV"),
        (["--issues", "nowhere.csv"], "nowhere.csv: No such file"),
        (["--issues", str(DEMO)], "--repo is missing"),
        (["--issues", str(DEMO), "--repo", "acme/wob"], "did you mean acme/web?"),
        (["--job", "nightly-repo-reviw"], "did you mean nightly-repo-review?"),
        (["--job", "nightly-repo-review", "--repo", "a/b"], "no --issues"),
    ],
)
def test_usage(folder: Path, options: list[str], said: str) -> None:
    """One clear line, and exit code 2."""
    process = demo(folder, *options)
    out, line = process.communicate(timeout=20)
    assert (process.returncode, out, line.count("\n")) == (2, "", 1)
    assert said in line


def processes_of(folder: Path) -> list[str]:
    """The command lines of the processes whose environment or command names the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if f"{folder}".encode() in text:
            found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def until(true: Any, seconds: float = 15) -> bool:
    """Wait for something; whether it came."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
