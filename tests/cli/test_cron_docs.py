"""``docs/cron.md`` is true: its lines run as cron runs them, and end as it says."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ledger.server import EmbeddedServer
from tests.cli.terminal import REPOSITORY, World, world
from tests.cli.test_clones import clone
from triage.identifiers import SCHEDULED
from worker.settings import Settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cron.md").read_text(encoding="utf-8")
POLICY = """\
jobs:
  daily-issue-triage:
    schedule: {every: daily, at: "00:00", timezone: UTC}
    mode: comment
    labels: {bug: It does not work, enhancement: Something new, question: Asks how}
    backlog: full
  nightly-repo-review:
    schedule: {every: daily, at: "00:00", timezone: UTC}
    mode: comment
  resource-watch:
    schedule: {every: daily, at: "00:00", timezone: UTC}
    resources: [{name: releases, url: "http://127.0.0.1/feed", kind: feed}]
"""


def block(language: str) -> list[str]:
    """The lines of the page's one block in this language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found).splitlines()


def exports() -> dict[str, str]:
    """The settings of the page's file."""
    pairs = (line.removeprefix("export ").partition("=") for line in block("sh"))
    return {name: value for name, _, value in pairs}


LINES = [line.split(maxsplit=5)[5] for line in block("crontab")]
JOBS, ALARM = LINES[:-1], LINES[-1]


@dataclass
class Machine:
    """A machine whose folders are below one of its own, and its cron."""

    world: World
    root: Path

    def rings(self, line: str) -> tuple[int, str]:
        """Run a line as cron does; gives its code and what it left in its log or would mail."""
        for place in ("/etc/retriage", "/var/lib", "/var/log", "/opt", "/srv"):
            line = line.replace(f"{place}/", f"{self.root}{place}/")
        log = re.search(r"2>>(\S+)", line)
        before = Path(log[1]).read_text() if log and Path(log[1]).exists() else ""
        bare = {"HOME": str(self.root), "LOGNAME": "retriage", "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=self.root,
            env={**bare, "SHELL": "/bin/sh"},
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )
        told = Path(log[1]).read_text()[len(before) :] if log else done.stdout
        assert done.stderr == ""
        assert "Traceback" not in told
        return done.returncode, told

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.root / "var/lib/retriage/data"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """What the page says is there, set up for the sandbox."""
    root = tmp_path_factory.mktemp("machine")
    with world(root, policy=POLICY, first=False) as here:
        for folder in ("etc/retriage", "var/lib/retriage", "var/log/retriage", "srv/clones"):
            (root / folder).mkdir(parents=True)
        made = Machine(here, root)
        origin = f"{here.terminal.settings['GITHUB_API_URL']}/{REPOSITORY}.git"
        clone(root / "srv/clones/api", origin)
        settings = here.terminal.settings
        (root / "etc/retriage/key.pem").write_text(settings["PRIVATE_KEY"])
        told = exports() | {
            "APP_ID": "42",
            "PRIVATE_KEY_PATH": f"{root}/etc/retriage/key.pem",
            "ANTHROPIC_API_KEY": settings["ANTHROPIC_API_KEY"],
            "RETRIAGE_DATA_DIR": str(made.data),
        }
        sandbox = {
            name: value
            for name, value in settings.items()
            if name.startswith(("RETRIAGE_", "GITHUB_API", "ANTHROPIC_BASE")) and name not in told
        }
        file = root / "etc/retriage/env"
        file.touch(mode=0o600)
        lines = [f"export {name}={value}\n" for name, value in {**told, **sandbox}.items()]
        file.write_text("".join(lines))
        program = root / "opt/retriage/.venv/bin/retriage"
        program.parent.mkdir(parents=True)
        path = f"PYTHONSAFEPATH=1 PYTHONPATH={ROOT}"
        program.write_text(f'#!/bin/sh\n{path} exec {sys.executable} -m cli "$@"\n')
        program.chmod(0o755)
        yield made


def test_every_job_with_windows_has_a_line() -> None:
    """And the settings are settings."""
    named = [re.search(r"--job (\S+)", line) for line in JOBS]
    assert sorted(found[1] for found in named if found) == sorted(SCHEDULED)
    assert {name.lower() for name in exports()} <= set(Settings.model_fields)


def test_every_word_is_one_of_the_log() -> None:
    """The words that the page alerts on are explained where all are."""
    words = set(re.findall(r"`([A-Z]+(?:-[A-Z]+)+|INCIDENT)\b", PAGE))
    logs = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| `([A-Z-]+)` \|", logs, re.MULTILINE))
    assert words >= {"RUN-FAILED", "RESUME-LINK-BROKEN", "SESSION-CLEARED", "STATE-NOT-SAVED"}
    assert words <= explained


def test_the_lines_run_and_run_again(machine: Machine) -> None:
    """With a new data folder the first is refused for a while. The next one does the work, the
    others reuse it; the alarm is silent after that, and not before."""
    code, told = machine.rings(JOBS[0])
    assert code == 99
    assert "LEDGER-NEW " in told
    assert told.splitlines()[-1].startswith("RUN-REFUSED ")
    assert "did not end well" in machine.rings(ALARM)[1]
    time.sleep(5)  # the absence window of the sandbox's machine, and its margins
    for line in JOBS:
        code, told = machine.rings(line)
        assert code == 0, told
        assert re.search(r"^RUN-(COMPLETED|NO-CHANGE) ", told, re.MULTILINE)
        written = len(machine.world.writes())
        code, told = machine.rings(line)
        assert code == 0, told
        assert re.search(r"^RUN-REUSED ", told, re.MULTILINE)
        assert len(machine.world.writes()) == written
    assert machine.rings(ALARM) == (0, "")
    assert machine.world.bot_comments() == 3


def test_lines_wait_for_each_other_and_give_up(machine: Machine) -> None:
    """99 with the line of the page, and no mark that all is well."""
    lock = machine.root / "var/lib/retriage/lock"
    mark = machine.root / "var/lib/retriage/triage.ok"
    mark.unlink(missing_ok=True)
    with subprocess.Popen(["flock", "--no-fork", lock, "sleep", "30"]) as other:
        try:
            while subprocess.run(["flock", "-n", lock, "true"], check=False).returncode == 0:
                assert other.poll() is None
                time.sleep(0.02)
            code, told = machine.rings(JOBS[1].replace("-w 600", "-w 0.2"))
        finally:
            other.terminate()
    assert code == 99
    assert told.splitlines()[-1] == "flock: timeout while waiting to get lock"
    assert not mark.exists()


def described(line: str, code: int) -> bool:
    """Whether the page's table of last lines has it."""
    table = PAGE.partition("| the line |")[2].partition("\n\n")[0]
    for row in re.findall(r"^\| (.*) \| (\d+) \|$", table, re.MULTILINE):
        shapes = re.findall(r"`(.*?)`", row[0])
        for shape in shapes:
            pattern = ".*".join(re.escape(part) for part in shape.split("…"))
            if int(row[1]) == code and re.match(f"(.* )?{pattern}", line.replace("  ", " ")):
                return True
    return False


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("acme/api", "acme/nothing", 2),
        ("acme/api", "/nowhere/api", 2),
        ("flock", "export GITHUB_API_URL=http://127.0.0.1:1 && flock", 1),
        ("flock", "export APP_ID=x && flock", 2),
    ],
)
def test_what_ends_before_a_run(machine: Machine, old: str, new: str, code: int) -> None:
    """The last line is one that the page describes, by what it says or by what it names."""
    ended, told = machine.rings(JOBS[1].replace(old, new, 1))
    assert ended == code, told
    last = told.splitlines()[-1]
    assert last.startswith(("APP_ID", "/nowhere/api")) or described(last, code), last


def test_a_data_folder_in_use(machine: Machine) -> None:
    """By what knows nothing of the lock."""
    with EmbeddedServer(machine.data):
        code, told = machine.rings(JOBS[1])
    assert code == 99
    assert described(told.splitlines()[-1], code), told
