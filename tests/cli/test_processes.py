"""Processes: nothing is left behind, whatever ends a run, and a folder has one user."""

import os
import signal
import subprocess
import time

from sandbox.model import Misbehaviour
from tests.cli.terminal import REPOSITORY, World


def _processes_of(world: World) -> list[str]:
    """Command lines that name the data folder, or the model of this world."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if str(world.terminal.folder) in line]


def _at_work(world: World) -> "subprocess.Popen[str]":
    """A run that waits for the model."""
    world.model.misbehave(Misbehaviour.HANG)
    running = world.terminal.start("run", REPOSITORY)
    end = time.monotonic() + 20
    while time.monotonic() < end and not world.model.requests:
        assert running.poll() is None, running.communicate()
        time.sleep(0.05)
    assert _processes_of(world)
    return running


def _gone(world: World) -> bool:
    end = time.monotonic() + 5
    while time.monotonic() < end and _processes_of(world):
        time.sleep(0.05)
    return not _processes_of(world)


def test_one_user_for_a_folder_and_no_process_after_a_kill(here: World) -> None:
    """A second command is refused; after SIGKILL the server is gone too, and nothing is lost."""
    running = _at_work(here)
    for words in (("run", REPOSITORY), ("runs",)):
        second = here.terminal.type(*words)
        assert second.code == 99
        (line,) = second.err.splitlines()
        assert line.startswith(f"the data folder {here.terminal.data} is in use")
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert _gone(here)

    here.model.reset()
    early = here.terminal.type("run", REPOSITORY)
    assert early.code == 99
    assert "another worker holds the lease, until" in early.out
    time.sleep(float(here.terminal.settings["RETRIAGE_LEASE_SECONDS"]))
    assert here.terminal.type("run", REPOSITORY).code == 0
    assert here.bot_comments() == 3


def test_an_interrupted_run_ends_cleanly(here: World) -> None:
    """130 and one line, for Ctrl-C and for SIGTERM."""
    for number in (signal.SIGINT, signal.SIGTERM):
        running = _at_work(here)
        os.kill(running.pid, number)
        out, err = running.communicate(timeout=20)
        assert running.returncode == 130
        assert out == ""
        assert err.splitlines()[-1].startswith("interrupted: what was begun is in the ledger")
        assert "Traceback" not in err
        assert _gone(here)
        here.model.reset()
        time.sleep(float(here.terminal.settings["RETRIAGE_LEASE_SECONDS"]))
