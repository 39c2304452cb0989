"""The README is true: what it names exists, and its examples run."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

from tests.processes.fleet import POLICY, fleet
from triage.contract import Status
from triage.policy import read_policy
from worker.policy_file import parse_policy
from worker.settings import Settings

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
REVIEW = """\
  nightly-repo-review:
    schedule: {every: daily, at: "00:00", timezone: UTC}
"""
OF_THE_BOT = {"HOST", "RETRIAGE_TICK_SECONDS"}


def _variables() -> set[str]:
    table = README.partition("### Settings")[2].partition("\n## ")[0]
    return set(re.findall(r"`([A-Z][A-Z0-9_]+)`", table))


def test_every_setting_is_in_the_table() -> None:
    """No setting is missing from the table, and the table names none that is not read."""
    assert _variables() - OF_THE_BOT == {name.upper() for name in Settings.model_fields}


def test_every_status_is_explained() -> None:
    """Each status word stands in the section on statuses."""
    section = README.partition("## Statuses")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([a-z-]+)`", section)) >= set(Status)


def test_the_policy_example_is_a_policy() -> None:
    """The YAML that people copy is accepted."""
    block = re.search(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert block is not None
    lines = [line.removeprefix("   ") for line in block[1].splitlines()]
    policy = read_policy(parse_policy("\n".join(lines).encode()))
    assert policy.triage is not None
    assert set(policy.triage.labels) == {"bug", "enhancement", "question"}


def test_the_two_commands_can_be_run() -> None:
    """script/demo and script/test are there, with their run bit."""
    for name in re.findall(r"^\$ (script/\w+)$", README, re.MULTILINE):
        assert (ROOT / name).stat().st_mode & stat.S_IXUSR


def test_every_linked_file_is_there() -> None:
    """What the README points at exists."""
    for name in re.findall(r"`((?:docs|sandbox)/[\w./-]+|[A-Z]+\.md|app\.yml|Procfile)`", README):
        assert (ROOT / name).exists(), name


def test_the_terminal_examples_run() -> None:
    """`retriage run`, `runs` and `show` do what the README shows, one after the other."""
    section = README.partition("## At a terminal")[2].partition("\n## ")[0]
    commands = re.findall(r"^\$ retriage (.*)$", section, re.MULTILINE)
    assert len(commands) == 6
    with fleet([("Crash on an empty file", "It crashes with a traceback.")]) as run:
        run.github.put_file("acme/api", ".github/retriage.yml", POLICY + REVIEW)
        run.github.install("retriage", "acme", ["acme/api"])
        for command in commands:
            keys = [item.inputs.dedupe_key for item in run.runs()]
            words = [keys[-1] if word.count(":") == 3 else word for word in command.split()]
            done = subprocess.run(
                [sys.executable, "-m", "cli", *words],
                env=run.environment | {"COLUMNS": "100", "LANG": os.environ.get("LANG", "C.UTF-8")},
                capture_output=True,
                text=True,
                check=False,
                timeout=50,
            )
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
