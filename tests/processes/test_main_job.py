"""The main job with everything real: receiver, clock, workers, RQ, Valkey, the SDK with its CLI."""

import os
import signal
import threading
import urllib.request
from pathlib import Path

import pytest

from sandbox.github.faults import POST_COMMENT
from tests.processes.fleet import BOT, CRON_SECRET, REPOSITORY, Fleet, fleet
from triage.contract import Status

ISSUES = [
    ("Crash on an empty file", "It crashes with a traceback: IndexError, expected no error."),
    ("Add a dark theme", "Please add support for a dark theme, it would be nice to have."),
    ("How do I configure the port?", "How can I set another port? I could not find it."),
]


def install(run: Fleet) -> None:
    """Start the processes, and install the App: its signed webhook reaches the receiver."""
    for name in ("web", "clock"):
        run.start(name)
    run.github.set_hook("retriage", f"{run.receiver()}/api/github/webhooks", _secret(run))
    run.github.install("retriage", "acme", [REPOSITORY])


def _secret(run: Fleet) -> str:
    return run.environment["WEBHOOK_SECRET"]


def completed(run: Fleet) -> bool:
    """The window's run is over."""
    return any(item.status is Status.COMPLETED for item in run.runs())


def cron(run: Fleet) -> int:
    """``POST /cron/daily-issue-triage``; the answer's status."""
    request = urllib.request.Request(
        f"{run.receiver()}/cron/daily-issue-triage",
        method="POST",
        headers={"Authorization": f"Bearer {CRON_SECRET}"},
    )
    with urllib.request.urlopen(request, timeout=5) as answer:
        return int(answer.status)


def written_once(run: Fleet) -> None:
    """One comment and one label on every issue, one summary issue, no incident."""
    for number in range(1, len(ISSUES) + 1):
        assert run.bot_comments(number) == 1, run.log()[-4000:]
        assert len(run.github.labels(REPOSITORY, number)) == 1
    assert sum(issue.author == BOT for issue in run.github.issues(REPOSITORY)) == 1
    assert run.incidents() == 0


def test_installed_triaged_and_run_again() -> None:
    """Installing starts the due window; cron, the clock and a person ask again: nothing twice."""
    with fleet(ISSUES) as run:
        run.start("worker")
        install(run)
        run.until(lambda: completed(run), "the window is completed")
        written_once(run)
        writes = len(run.github.requests("POST", "/issues"))
        assert cron(run) == 202
        code, report = run.run_once()
        assert (code, report["outcome"]) == (0, "reused")
        assert len(run.github.requests("POST", "/issues")) == writes
        assert run.model.counts["sessions"] == 1
        written_once(run)


@pytest.mark.parametrize("victim", ["worker", "work horse", "both"])
def test_killed_between_the_comment_and_its_record(victim: str) -> None:
    """SIGKILL while GitHub has applied a comment that nobody has recorded: another worker takes
    over after the lock delay, finds the comment by its marker, and completes."""
    with fleet(ISSUES) as run:
        killed = threading.Event()
        worker = run.start("worker")

        def kill(_: object) -> None:
            horse = _child_of(worker.pid)
            victims = {"worker": [worker.pid], "work horse": [horse]}
            for pid in victims.get(victim, [worker.pid, horse]):
                os.kill(pid, signal.SIGKILL)
            killed.set()

        run.github.fail(POST_COMMENT, "call after applying", call=kill, occurrence=2)
        install(run)
        run.until(killed.is_set, "the worker is killed")
        if victim != "work horse":
            worker.wait(10)
            run.start("worker")
        run.until(lambda: completed(run), "another worker completes it")
        written_once(run)
        assert run.model.counts["sessions"] == 1
        attempts = run.runs()[0].attempts
        assert [item.ended for item in attempts] == ["lease lapsed", "completed"]


def test_killed_while_it_takes_the_installation_in() -> None:
    """SIGKILL before anything of the accepted delivery is done: it is due again, and is done."""
    with fleet(ISSUES) as run:
        killed = threading.Event()
        worker = run.start("worker")

        def kill(_: object) -> None:
            os.kill(worker.pid, signal.SIGKILL)
            killed.set()

        run.github.fail("GET ", "call before applying", call=kill)
        install(run)
        run.until(killed.is_set, "the worker is killed")
        assert run.runs() == []
        run.start("worker")
        run.until(lambda: completed(run), "the installation is taken in, and its window completed")
        written_once(run)


def test_two_workers_at_once_share_the_night() -> None:
    """Two workers, a trigger each second: one executes, nothing is written twice."""
    with fleet(ISSUES) as run:
        run.start("worker")
        run.start("worker")
        install(run)
        for _ in range(3):
            cron(run)
        run.until(lambda: completed(run), "the window is completed")
        written_once(run)
        assert run.model.counts["sessions"] == 1


def test_a_command_is_answered_by_reactions() -> None:
    """``/retriage``: seen, done, the one comment kept; the same delivery again does nothing."""
    with fleet(ISSUES) as run:
        run.start("worker")
        install(run)
        run.until(lambda: completed(run), "the window is completed")
        run.github.as_user("maintainer").comment(REPOSITORY, 1, "/retriage")

        def answered() -> bool:
            reactions = run.github.comments(REPOSITORY, 1)[-1].reactions
            return {f"eyes {BOT}", f"+1 {BOT}"} <= set(reactions)

        run.until(answered, "the command is answered")
        written_once(run)
        deliveries = [item for item in run.github.webhooks.deliveries if "comment" in item.event]
        run.github.webhooks.redeliver(deliveries[-1].guid)
        run.until(lambda: "DELIVERY duplicate" in run.log(), "the redelivery is known")
        written_once(run)
        assert run.model.counts["sessions"] == 2


def _child_of(pid: int) -> int:
    """The work horse: the worker's one child."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
