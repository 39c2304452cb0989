"""Processes: nothing is left behind, whatever ends a run, and a folder has one user."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbox.model import Misbehaviour
from tests.cli.terminal import REPOSITORY, World


def _descendants(pid: int) -> set[int]:
    """The processes that a process started, and theirs."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True)
    pairs = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    found, new = set[int](), {pid}
    while new:
        new = {child for child, parent in pairs if parent in new} - found
        found |= new
    return found


def _alive(pids: set[int]) -> set[int]:
    listed = subprocess.run(["ps", "-eo", "pid=,stat="], capture_output=True, text=True, check=True)
    rows = [line.split() for line in listed.stdout.splitlines()]
    return {int(pid) for pid, state in rows if not state.startswith("Z")} & pids


@dataclass
class AtWork:
    """A run that waits for the model, with what it started: its server and the agent's CLI."""

    process: "subprocess.Popen[str]"
    children: set[int]

    def left_over(self) -> set[int]:
        """What is still there a while after its end."""
        end = time.monotonic() + 5
        while (left := _alive(self.children)) and time.monotonic() < end:
            time.sleep(0.05)
        return left


@contextmanager
def at_work(world: World) -> Iterator[AtWork]:
    """A run that hangs in the middle."""
    world.model.reset()
    world.model.misbehave(Misbehaviour.HANG)
    process = world.terminal.start("run", REPOSITORY)
    try:
        while not world.model.requests:
            assert process.poll() is None
            time.sleep(0.05)
        children = _descendants(process.pid)
        assert len(children) >= 2
        yield AtWork(process, children)
    finally:
        process.kill()
        process.communicate()
        world.model.reset()


def test_one_user_for_a_folder_and_no_process_after_a_kill(here: World) -> None:
    """A second command is refused; after SIGKILL the server is gone too, and nothing is lost."""
    with at_work(here) as run:
        for words in (("run", REPOSITORY), ("runs",)):
            second = here.terminal.type(*words)
            assert second.code == 99
            (line,) = second.err.splitlines()
            assert line.startswith(f"the data folder {here.terminal.data} is in use")
        run.process.send_signal(signal.SIGKILL)
        run.process.wait()
        assert run.left_over() == set()
    early = here.terminal.type("run", REPOSITORY)
    if early.code == 99:  # unless all this took longer than a lease
        assert "another worker holds the lease, until" in early.out
    time.sleep(float(here.terminal.settings["RETRIAGE_LEASE_SECONDS"]))
    assert here.terminal.type("run", REPOSITORY).code == 0
    assert here.bot_comments() == 3


def test_the_ledger_dies_on_the_way(here: World) -> None:
    """1, and one line that says why there is no other: the lease is lost, and nothing more is
    written. The same command goes on."""
    with at_work(here) as run:
        started = [(pid, _command(pid)) for pid in run.children]
        (server,) = [pid for pid, command in started if "valkey-server" in command]
        os.kill(server, signal.SIGKILL)
        out, err = run.process.communicate(timeout=30)
        assert (run.process.returncode, out) == (1, "")
        last = err.splitlines()[-1]
        assert last.startswith("RUN-REFUSED run=daily-issue-triage:")
        assert "the lease was lost on the way" in last
        assert run.left_over() == set()
    time.sleep(float(here.terminal.settings["RETRIAGE_LEASE_SECONDS"]))
    assert here.terminal.type("run", REPOSITORY).code == 0
    assert here.bot_comments() == 3


def _command(pid: int) -> str:
    """How a process was started; empty for one that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_cleanly(here: World, number: signal.Signals) -> None:
    """130 and one line, for Ctrl-C and for a platform's stop; nothing is left."""
    with at_work(here) as run:
        run.process.send_signal(number)
        out, err = run.process.communicate(timeout=20)
        assert run.process.returncode == 130
        assert out == ""
        assert err.splitlines()[-1].startswith("interrupted: what was begun is in the ledger")
        assert "Traceback" not in err
        assert run.left_over() == set()
