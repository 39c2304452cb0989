"""Every expected failure is one clear line with the way out, and the right code."""

import subprocess
import sys
from collections.abc import Mapping

import pytest

from sandbox.github import new_private_key
from tests.cli.terminal import NO_APP, POLICY, REPOSITORY, Terminal, World


def test_nothing_is_set(bare: Terminal) -> None:
    """What is missing is said, a line each, and no folder is made."""
    ended = bare.type("run", REPOSITORY)
    assert ended.code == 2
    assert [line.split()[0] for line in ended.err.splitlines()] == [
        "GITHUB_TOKEN",
        "ANTHROPIC_API_KEY",
    ]
    assert not bare.data.exists()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"MARKER_KEYS": ""}, "MARKER_KEYS"),
        ({"MARKER_KEYS": "k1"}, "MARKER_KEYS"),
        ({"PRIVATE_KEY": ""}, "PRIVATE_KEY"),
        ({"PRIVATE_KEY": "", "PRIVATE_KEY_PATH": "missing.pem"}, "PRIVATE_KEY_PATH"),
        ({"APP_ID": "retriage"}, "APP_ID"),
        ({"REDIS_URL": "localhost"}, "REDIS_URL"),
        ({"RETRIAGE_LEASE_SECONDS": "1"}, "RETRIAGE_LEASE_SECONDS"),
        ({"RETRIAGE_DATA_DIR": "/dev/null/data"}, "RETRIAGE_DATA_DIR"),
    ],
)
def test_a_setting_that_does_not_do(shared: World, settings: Mapping[str, str], named: str) -> None:
    """The line names the variable."""
    ended = shared.terminal.type("run", REPOSITORY, **settings)
    assert ended.code == 2
    assert ended.out == ""
    (line,) = ended.err.splitlines()
    assert line.startswith(named)


def test_redis_out_of_reach(shared: World) -> None:
    """The word that alerts hang on; neither the password nor a traceback is shown."""
    url = "redis://:geheim@127.0.0.1:1/0"
    ended = shared.terminal.type("run", REPOSITORY, REDIS_URL=url)
    assert ended.code == 1
    assert ended.err.startswith("STATE-NOT-SAVED ")
    listed = shared.terminal.type("runs", REDIS_URL=url)
    worker = shared.terminal.type("worker", REDIS_URL=url)
    assert (listed.code, worker.code) == (1, 1)
    for said in (ended.err, listed.err, worker.err):
        assert len(said.splitlines()) == 1
        assert "127.0.0.1:1" in said
        assert "REDIS_URL" in said
        assert "geheim" not in said


def test_github_out_of_reach(shared: World) -> None:
    """Nothing was written: it may be run again."""
    ended = shared.terminal.type("run", REPOSITORY, GITHUB_API_URL="http://127.0.0.1:1")
    assert ended.code == 1
    (line,) = ended.err.splitlines()
    assert line.startswith("GitHub at http://127.0.0.1:1 is out of reach")


def test_a_wrong_key(shared: World) -> None:
    """Of the App, or a token that GitHub does not know."""
    ended = shared.terminal.type("run", REPOSITORY, PRIVATE_KEY=new_private_key())
    assert ended.code == 2
    assert ended.err.startswith("APP_ID and PRIVATE_KEY cannot be used: ")
    ended = shared.terminal.type("run", REPOSITORY, **NO_APP, GITHUB_TOKEN="ghp_" + "x" * 36)
    assert ended.code == 2
    assert ended.err.startswith("GITHUB_TOKEN cannot be used: ")
    assert "xxxx" not in ended.err


def test_a_repository_that_is_not_there(shared: World) -> None:
    """Or that the App is not installed on: it looks the same."""
    ended = shared.terminal.type("run", "acme/other")
    assert ended.code == 2
    assert ended.err.startswith("acme/other was not found, or the App is not installed on it")
    assert shared.terminal.type("run", "acme").code == 2


def test_windows_that_there_are_not(shared: World) -> None:
    """One that is malformed, and one that is not due."""
    ended = shared.terminal.type("run", REPOSITORY, "--window", "yesterday")
    assert ended.code == 2
    assert "one looks like 2026-09-16" in ended.err
    ended = shared.terminal.type("run", REPOSITORY, "--window", "2999-01-01")
    assert ended.code == 2
    assert "2999-01-01 00:00 Asia/Taipei (2998-12-31 16:00 UTC)" in ended.err


def test_a_persons_token_only_observes(shared: World) -> None:
    """Unless its account is named as the bot's own, which GitHub is asked about."""
    token = shared.github.add_token("alice")
    for words in ((), ("--mode", "comment")):
        ended = shared.terminal.type("run", REPOSITORY, *words, **NO_APP, GITHUB_TOKEN=token)
        assert ended.code == 2
        assert ended.err.startswith("GITHUB_TOKEN alone may only observe, not comment")
    named = {**NO_APP, "GITHUB_TOKEN": token, "RETRIAGE_BOT_ID": "5"}
    ended = shared.terminal.type("run", REPOSITORY, **named)
    assert ended.code == 2
    assert "RETRIAGE_BOT_ID is 5" in ended.err
    assert shared.writes() == []


def test_no_policy_and_a_broken_one(shared: World) -> None:
    """The way out is an example; a broken file is shown line by line."""
    shared.github.add_repository("acme/new", id=77)
    shared.github.install("retriage", "acme", [REPOSITORY, "acme/new"])
    ended = shared.terminal.type("run", "acme/new")
    assert ended.code == 2
    assert "retriage check --example" in ended.err
    broken = POLICY.replace("backlog", "backlock")
    shared.github.put_file("acme/new", ".github/retriage.yml", broken)
    ended = shared.terminal.type("run", "acme/new")
    assert ended.code == 2
    assert ended.err.splitlines() == [
        "the policy of acme/new cannot be used:",
        ".github/retriage.yml:7: jobs.daily-issue-triage.backlock: unknown key; "
        "did you mean 'backlog'?",
    ]


@pytest.mark.parametrize("process", ["web", "worker", "clock"])
def test_processes_share_one_redis(bare: Terminal, process: str) -> None:
    """The embedded server is of one process."""
    ended = bare.type(process)
    assert ended.code == 2
    (line,) = ended.err.splitlines()
    assert line.startswith("REDIS_URL is missing")


def test_the_last_resort(bare: Terminal) -> None:
    """An error that nobody expected is one line too, and says where the details are."""
    program = "import cli.checking as c; c.example_text = lambda: 1 / 0; "
    (bare.folder / "sitecustomize.py").write_text(program)
    path = f"{bare.folder}:{bare.settings['PYTHONPATH']}"
    ended = bare.type("check", "--example", PYTHONPATH=path, TMPDIR=str(bare.folder))
    assert ended.code == 1
    (line,) = ended.err.splitlines()
    assert "ZeroDivisionError" in line
    (details,) = bare.folder.glob("retriage-*.log")
    assert str(details) in line
    assert details.stat().st_mode & 0o777 == 0o600
    assert "Traceback" in details.read_text()


@pytest.mark.parametrize(
    ("words", "redirected", "code", "said"),
    [
        ("check --example", ">&-", 0, ""),
        ("check --example", "2>&-", 0, "# Retriage's policy"),
        ("check --example", ">/dev/full", 1, "there is no room left\n"),
        ("check --example", ">/dev/full 2>&1", 1, ""),
        ("check --example", "| true; exit ${PIPESTATUS[0]}", 0, ""),
        ("runs", "2>/dev/full", 0, ""),
        ("runs", ">&- 2>&- <&-", 0, ""),
        ("--version", ">/dev/full", 1, "there is no room left\n"),
        ("show x", "2>/dev/full", 2, ""),
    ],
)
def test_streams_that_take_nothing(
    bare: Terminal, words: str, redirected: str, code: int, said: str
) -> None:
    """Closed, full, or left by who read: the exit code is the command's, and no traceback."""
    given = {name: value for name, value in bare.settings.items() if value}
    ended = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m cli {words} {redirected}"],
        env=given,
        cwd=bare.folder,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    told = ended.stdout + ended.stderr
    assert ended.returncode == code, told
    assert "Traceback" not in told
    assert "Exception ignored" not in told
    assert told.startswith(said) if "# " in said else told == said


def test_no_column_at_all(bare: Terminal) -> None:
    """A failure is said on a terminal that claims to have no width."""
    ended = bare.type("show", "x", COLUMNS="0")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
