"""The CLI's process: what it sees of the worker, and that it never outlives session or worker."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox.model import Misbehaviour, ModelServer
from worker.agent import ClaudeAgent, cli_wrapper
from worker.agent.cli_wrapper import KEPT
from worker.agent.leash import Leash
from worker.ports import AgentRequest, IssueText

SECRETS = {
    "WEBHOOK_SECRET": "canary-1",
    "PRIVATE_KEY": "canary-2",
    "MARKER_KEYS": "canary-3",
    "GITHUB_TOKEN": "canary-4",
    "REDIS_URL": "redis://:canary-5@127.0.0.1",
    "ANTHROPIC_AUTH_TOKEN": "canary-6",
    "CLAUDE_CODE_SECRET": "canary-7",
    "AWS_SECRET_ACCESS_KEY": "canary-8",
}

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="looks at processes in /proc"
)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def request() -> AgentRequest:
    issue = IssueText(1, "Crash", "It does.", "octocat", (), datetime(2026, 9, 16, tzinfo=UTC))
    return AgentRequest("acme/api", (issue,), {"bug": "A fault"}, (), None, 6, 1.0)


def agent(model: ModelServer, folder: Path) -> ClaudeAgent:
    return ClaudeAgent(model=None, api_key="sk-test", base_url=model.url, folder=folder)


def processes(folder: Path) -> list[int]:
    """The processes that work in a folder, removed or not."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            where = (entry / "cwd").readlink()
        except OSError:
            continue
        if str(where).startswith(f"{folder}/"):
            found.append(int(entry.name))
    return found


def until(true: Callable[[], object], seconds: float = 10) -> None:
    """Wait for something, and fail if it does not come."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


async def asked(model: ModelServer) -> None:
    """Wait until a session has sent its request."""
    await asyncio.to_thread(until, lambda: model.requests)


def environment_of(pid: int) -> str:
    return Path(f"/proc/{pid}/environ").read_bytes().decode()


def is_empty(folder: Path) -> bool:
    return not list(folder.iterdir())


def test_secrets_of_the_worker_do_not_reach_the_cli(
    model: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CLI sees the variables of the list alone, and folders of its own."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    model.misbehave(Misbehaviour.HANG)

    async def seen_by_the_cli() -> str:
        task = asyncio.create_task(agent(model, tmp_path).decide(request()))
        await asked(model)
        (pid,) = processes(tmp_path)
        seen = environment_of(pid)
        task.cancel()
        await asyncio.wait({task})
        return seen

    seen = asyncio.run(seen_by_the_cli())
    variables = dict(entry.split("=", 1) for entry in seen.split("\0") if entry)
    assert set(variables) <= KEPT
    assert "canary" not in seen
    assert variables["ANTHROPIC_API_KEY"] == "sk-test"
    for name in ("HOME", "TMPDIR", "CLAUDE_CONFIG_DIR"):
        assert variables[name].startswith(f"{tmp_path}/retriage-agent-")


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("kind", [Misbehaviour.HANG, Misbehaviour.HANG_WITH_PINGS])
def test_cancelled_session_leaves_nothing(
    model: ModelServer, tmp_path: Path, kind: Misbehaviour, times: int
) -> None:
    """The CLI is dead and its folder gone by the time that the first cancellation is through, or
    a moment after the second: the SDK alone would take five seconds, or leave an orphan."""
    model.misbehave(kind)

    async def cancel() -> None:
        task = asyncio.create_task(agent(model, tmp_path).decide(request()))
        await asked(model)
        assert len(processes(tmp_path)) == 1
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 1)
        until(lambda: not processes(tmp_path), 1)
        assert is_empty(tmp_path)

    asyncio.run(cancel())


def test_session_cancelled_while_it_starts_leaves_nothing(
    model: ModelServer, tmp_path: Path
) -> None:
    """At whatever instant between the first step and the request the cancellation comes."""

    async def cancel_after(seconds: float) -> None:
        task = asyncio.create_task(agent(model, tmp_path).decide(request()))
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.wait({task})

    for milliseconds in (0, 1, 3, 6, 10, 15, 20, 30, 45, 60, 90, 140):
        asyncio.run(cancel_after(milliseconds / 1000))
        until(lambda: not processes(tmp_path), 2)
        assert is_empty(tmp_path)


WORKER = """
    import asyncio, sys
    from datetime import UTC, datetime
    from pathlib import Path
    from worker.agent import ClaudeAgent
    from worker.ports import AgentRequest, IssueText

    issue = IssueText(1, "Crash", "", "octocat", (), datetime.now(UTC))
    request = AgentRequest("acme/api", (issue,), {"bug": ""}, (), None, 6, 1.0)
    agent = ClaudeAgent(model=None, api_key="k", base_url=sys.argv[1], folder=Path(sys.argv[2]))
    asyncio.run(agent.decide(request))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_cli_dies_with_its_worker(
    model: ModelServer, tmp_path: Path, number: signal.Signals
) -> None:
    """A worker that is killed in the middle of a session takes the CLI with it; the folder that it
    leaves is removed by the next session."""
    model.misbehave(Misbehaviour.HANG)
    command = [sys.executable, "-c", textwrap.dedent(WORKER), model.url, str(tmp_path)]
    with subprocess.Popen(command) as worker:
        until(lambda: model.requests)
        assert len(processes(tmp_path)) == 1
        worker.send_signal(number)
        worker.wait(5)
    until(lambda: not processes(tmp_path), 1)
    assert not is_empty(tmp_path)
    model.reset()
    asyncio.run(agent(model, tmp_path).decide(request()))
    assert is_empty(tmp_path)


WATCHED = """
    import os, sys, time
    sys.path.insert(0, sys.argv[1])
    import cli_wrapper
    from pathlib import Path
    cli_wrapper.take(Path(sys.argv[2]))
    cli_wrapper.watch(os.getppid())
    os.execvp("sleep", ["sleep", "60"])
"""


@pytest.mark.parametrize("who", ["worker", "cli"])
def test_watchdog_does_the_same_without_the_kernel(tmp_path: Path, who: str) -> None:
    """Where the kernel does not kill with the parent, a watchdog does, and ends with the CLI."""
    leash = tmp_path / "leash"
    leash.touch()
    wrapper = str(Path(cli_wrapper.__file__).parent)
    inner = [sys.executable, "-c", textwrap.dedent(WATCHED), wrapper, str(leash)]
    outer = f"import subprocess; subprocess.Popen({inner!r}).wait()"
    with subprocess.Popen([sys.executable, "-c", outer], cwd=_work(tmp_path)) as worker:
        until(lambda: leash.read_text() and len(processes(tmp_path)) == 3)
        os.kill(worker.pid if who == "worker" else int(leash.read_text()), signal.SIGKILL)
        worker.wait(5)
    until(lambda: not processes(tmp_path), 3)


def test_leash_kills_what_ignores_the_end_of_its_input(tmp_path: Path) -> None:
    """A process group that will not go is killed, children and all, and nothing is left of it."""
    leash = Leash(tmp_path, Path("/bin/sh"))
    stubborn = "trap '' TERM INT HUP; sleep 60 & sleep 60"
    with subprocess.Popen([leash.launcher, "-c", stubborn], cwd=_work(tmp_path)) as process:
        until(lambda: len(processes(tmp_path)) == 3)
        assert (leash.alive, leash.pid) == (True, process.pid)
        leash.kill()
        assert not leash.alive
    until(lambda: not processes(tmp_path), 1)
    leash.close()


def test_leash_that_was_let_go_stops_a_late_start(tmp_path: Path) -> None:
    """A process that comes up after the kill finds no leash and does not become the CLI."""
    leash = Leash(tmp_path, Path("/bin/echo"))
    leash.kill()
    done = subprocess.run([leash.launcher, "hello"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (cli_wrapper.GIVEN_UP, "")
    leash.close()


def test_wrapper_refuses_another_parent(tmp_path: Path) -> None:
    """A worker that died before the tie was made is noticed: its pid is not the parent's."""
    leash = tmp_path / "leash"
    leash.touch()
    command = [sys.executable, cli_wrapper.__file__, "/bin/echo", "1", str(leash), "hello"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (cli_wrapper.GIVEN_UP, "")


def _work(folder: Path) -> Path:
    work = folder / "work"
    work.mkdir()
    return work
