"""A world for the command: a GitHub and a model on loopback, and ``retriage`` as people start it.

Every command is a process of its own, with nothing in its environment but what is given here.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from ledger.connection import connect
from ledger.ledger import open_ledger
from ledger.server import EmbeddedServer
from ledger.timing import LedgerTiming
from sandbox.github import GitHub, new_private_key
from sandbox.github.server import GitHubServer
from sandbox.model import ModelServer

REPOSITORY = "acme/api"
REPOSITORY_ID = 1296269
BOT = "retriage[bot]"
PRIVATE_KEY = new_private_key()
POLICY = """\
jobs:
  daily-issue-triage:
    schedule: {every: daily, at: "00:00", timezone: Asia/Taipei}
    mode: comment
    labels: {bug: It does not work, enhancement: Something new, question: Asks how}
    exclusive: [[bug, enhancement, question]]
    backlog: full
"""

NO_APP = {"APP_ID": "", "PRIVATE_KEY": "", "MARKER_KEYS": ""}


@dataclass
class Ended:
    """A command that is over."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it answered, as JSON."""
        return json.loads(self.out)


@dataclass
class Terminal:
    """Where commands are typed. ``settings`` are the environment; give "" to unset one."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)

    def start(self, *words: str, **settings: str) -> "subprocess.Popen[str]":
        """Type a command and do not wait."""
        given = {**self.settings, **settings}
        return subprocess.Popen(
            [sys.executable, "-m", "cli", *words],
            env={name: value for name, value in given.items() if value},
            cwd=self.folder,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def type(self, *words: str, **settings: str) -> Ended:
        """Type a command and wait for its end. No traceback is ever shown."""
        process = self.start(*words, **settings)
        out, err = process.communicate(timeout=50)
        assert "Traceback" not in err, err
        return Ended(process.returncode, out, err)

    @property
    def data(self) -> Path:
        """The data folder."""
        return Path(self.settings["RETRIAGE_DATA_DIR"])


def terminal(folder: Path, **settings: str) -> Terminal:
    """A terminal with a data folder and nothing else set."""
    root = Path(__file__).parents[2]
    base = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(root),
        "PYTHONSAFEPATH": "1",
        "RETRIAGE_DATA_DIR": str(folder / "data"),
        **{name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")},
    }
    return Terminal(folder, {**base, **settings})


@dataclass
class World:
    """One repository with three issues, its App, a model, and a terminal that may use them."""

    github: GitHub
    model: ModelServer
    terminal: Terminal

    def writes(self) -> list[str]:
        """Requests that would have changed something; tokens and git's reading are none."""
        sent = [item for item in self.github.requests() if item.method != "GET"]
        reads = ("access_tokens", "git-upload-pack")
        return [f"{item.method} {item.path}" for item in sent if not item.path.endswith(reads)]

    def bot_comments(self) -> int:
        """How many comments of the bot there are."""
        numbers = [issue.number for issue in self.github.issues(REPOSITORY)]
        comments = [item for n in numbers for item in self.github.comments(REPOSITORY, n)]
        return sum(item.author == BOT for item in comments)


@contextmanager
def world(folder: Path, *, policy: str = POLICY, first: bool = True) -> Iterator[World]:
    """The world; ``first``: its ledger was made together with its App."""
    github = GitHub()
    github.add_organization("acme")
    github.add_repository(REPOSITORY, id=REPOSITORY_ID)
    for label in ("bug", "enhancement", "question"):
        github.as_user("maintainer").create_label(REPOSITORY, label)
    if policy:
        github.put_file(REPOSITORY, ".github/retriage.yml", policy)
    github.add_app("retriage", 42, private_key=PRIVATE_KEY)
    github.install("retriage", "acme", [REPOSITORY])
    for title in ("It crashes on an empty file", "Please add a dark mode", "How do I install it?"):
        github.add_issue(REPOSITORY, title, "As the title says.", author="reporter")
    with GitHubServer(github) as server, ModelServer() as model:
        settings = {
            "APP_ID": "42",
            "PRIVATE_KEY": PRIVATE_KEY,
            "MARKER_KEYS": "k1:" + "0123456789abcdef" * 4,
            "GITHUB_API_URL": server.url,
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "sk-sandbox",
            "RETRIAGE_LEASE_SECONDS": "4",
            "RETRIAGE_LOCK_DELAY_SECONDS": "2.2",
            "RETRIAGE_ABSENCE_WINDOW_SECONDS": "2.5",
            "RETRIAGE_REQUEST_TIMEOUT_SECONDS": "2",
            "RETRIAGE_WRITE_INTERVAL_SECONDS": "0",
            "RETRIAGE_PACING_SCALE": "1000",
        }
        typed = terminal(folder, **settings)
        if first:
            first_ledger(typed.data)
        yield World(github, model, typed)


def first_ledger(folder: Path) -> None:
    """Make the ledger of a data folder one that was made together with its App."""

    async def ensure(url: str) -> None:
        async with connect(url) as client:
            await open_ledger(client, LedgerTiming()).epochs.ensure(first=True)

    with EmbeddedServer(folder) as server:
        asyncio.run(ensure(server.url))


def today() -> str:
    """The window that is due now, by POLICY."""
    return datetime.now(UTC).astimezone(ZoneInfo("Asia/Taipei")).date().isoformat()
