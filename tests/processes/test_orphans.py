"""The count of what a round left behind: what has its mark or its session, and no other."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.processes.nursery import Nursery
from tests.processes.orphans import left_over, living

Start = Callable[[Mapping[str, str]], "subprocess.Popen[bytes]"]

PATIENCE_SECONDS = 30.0


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts something that lasts, in a session of its own; it ends with the test."""
    with ExitStack() as stack:

        def one(environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
            command = ["/bin/sleep", "600"]
            process = subprocess.Popen(command, env=environment, start_new_session=True)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield one


def found(sessions: Collection[int], mark: Path) -> list[int]:
    """What is found, once something is."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not (processes := living(sessions, str(mark))) and time.monotonic() < until:
        time.sleep(0.02)
    return [process.pid for process in processes]


def test_by_its_mark_in_a_session_of_its_own(start: Start, tmp_path: Path) -> None:
    """As the agent's CLI would be: found by its environment, and ended when it is counted."""
    ours, other = start({"HOME": str(tmp_path / "home")}), start({})
    assert found((), tmp_path) == [ours.pid]
    assert [item.pid for item in left_over((), str(tmp_path), patience_seconds=0)] == [ours.pid]
    assert ours.wait() == -signal.SIGKILL
    assert other.poll() is None


def test_by_its_session(start: Start, tmp_path: Path) -> None:
    """As a work horse would be: forked, so that its environment tells nothing."""
    ours = start({})
    assert found({ours.pid}, tmp_path) == [ours.pid]
    ours.kill()
    ours.wait()
    assert left_over({ours.pid}, str(tmp_path), patience_seconds=PATIENCE_SECONDS) == []


def test_what_is_not_yet_waited_for_does_not_live(start: Start, tmp_path: Path) -> None:
    """A zombie is nobody's harm."""
    ours = start({"HOME": str(tmp_path)})
    ours.kill()
    os.waitid(os.P_PID, ours.pid, os.WEXITED | os.WNOWAIT)
    assert living({ours.pid}, str(tmp_path)) == []


def test_what_a_nursery_forked_ends_with_it(tmp_path: Path) -> None:
    """A run of the tests that is cut short leaves no process behind."""
    environment = {"REDIS_URL": f"unix://{tmp_path}/nobody"}
    with Nursery() as nursery:
        child = nursery.fork(["clock"], environment, tmp_path / "clock.log")
        child.kill(signal.SIGSTOP)
        assert found({child.pid}, tmp_path) == [child.pid]
    assert left_over({child.pid}, str(tmp_path), patience_seconds=PATIENCE_SECONDS) == []
