"""What the command says of itself."""

import subprocess
import sys

import pytest

from tests.cli.terminal import Terminal

COMMANDS = ("demo", "run", "runs", "show", "resolve", "check", "web", "worker", "clock")


def test_help_opens_with_examples_and_names_every_command(bare: Terminal) -> None:
    """The first word of the help is an example's heading."""
    ended = bare.type("--help")
    assert ended.code == 0
    assert ended.out.startswith("Examples:\n  retriage demo")
    listed = ended.out.partition("Commands:")[2].split("\n")
    assert [line.split()[0] for line in listed if line.strip()] == list(COMMANDS)


@pytest.mark.parametrize("command", ["run", "show", "resolve", "check"])
def test_help_of_a_command_opens_with_examples_at_40_columns(bare: Terminal, command: str) -> None:
    """Besides the examples, which are there to be copied, nothing is wider than the terminal."""
    ended = bare.type(command, "--help", COLUMNS="40")
    examples, _, rest = ended.out.partition("Usage:")
    assert examples.startswith(f"Examples:\n  retriage {command}")
    assert max(map(len, rest.splitlines())) <= 40


def test_help_loads_nothing_heavy() -> None:
    """Neither the agent, nor a server, nor the terminal's colours."""
    program = (
        "import sys; sys.argv[1:] = ['--help']\n"
        "try:\n from cli.__main__ import main; main()\n"
        "except SystemExit: pass\n"
        "heavy = {'pydantic', 'redis', 'rich', 'githubkit', 'claude_agent_sdk', 'asyncio', 'rq'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.returncode == 0


def test_version(bare: Terminal) -> None:
    """Name and number."""
    ended = bare.type("--version")
    assert ended.out.split()[0] == "retriage"
    assert ended.out.split()[1][0].isdigit()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["rnu"], "'run'"),
        (["run", "acme/api", "--widnow", "2026-09-16"], "--window"),
        (["run", "acme/api", "--mode", "obsreve"], "did you mean observe?"),
        (["run", "acme/api", "--job", "daily-isue-triage"], "did you mean daily-issue-triage?"),
        (["runs", "--status", "need-review"], "did you mean needs-review?"),
    ],
)
def test_a_typo_gets_a_suggestion(bare: Terminal, words: list[str], hint: str) -> None:
    """In a command, an option and a value."""
    ended = bare.type(*words)
    assert ended.code == 2
    assert ended.out == ""
    assert hint in ended.err


def test_without_a_command_the_help_is_shown(bare: Terminal) -> None:
    """It is a usage error all the same."""
    ended = bare.type()
    assert ended.code == 2
    assert ended.err.startswith("Examples:")
