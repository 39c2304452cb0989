"""What is left of a checkout's processes, of its token, and of what a killed worker had begun."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.worker.checkout_world import (
    PACKS,
    REPOSITORY,
    World,
    arguments_of,
    content,
    descendants,
    git_is_at,
    processes,
    slow_git,
    until,
    world,
)
from worker.ports import CheckoutFailed

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="looks at processes in /proc"
)
GIT = shutil.which("git") or ""
STEPS = ["init", "index-pack", "ls-tree", "cat-file"]

WORKER = """
    import asyncio, sys
    from pathlib import Path
    from worker.checkout.adapter import GitCheckouts
    from worker.ports import CheckoutFailed, Place

    class Tokens:
        async def token(self, installation):
            return sys.stdin.readline().strip()

        def refused(self, installation, token):
            return False

    async def main():
        url, folder, commit = sys.argv[1:]
        checkouts = GitCheckouts(Path(folder), Tokens(), api_url=url)
        try:
            async with checkouts.at(Place(1296269, "acme/api", "1"), commit) as checkout:
                print(checkout.root, *checkout.files)
        except CheckoutFailed as failed:
            print(failed)

    asyncio.run(main())
"""


@contextlib.asynccontextmanager
async def another_worker(here: World, path: str = "") -> AsyncIterator[subprocess.Popen[str]]:
    """A process that asks for the head, and gets the token where no other process sees it."""
    token = (await here.authority.header(here.installation)).removeprefix("token ")
    command = [sys.executable, "-c", textwrap.dedent(WORKER), here.url, str(here.folder), here.head]
    child = subprocess.Popen(  # noqa: ASYNC220 - it does not wait
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PATH": path or os.environ["PATH"]},
    )
    assert child.stdin is not None
    child.stdin.write(f"{token}\n")
    child.stdin.close()
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


def said_by(worker: subprocess.Popen[str]) -> str:
    """All that it says, when it has ended."""
    assert worker.stdout is not None
    return worker.stdout.read()


def seen_of(pids: list[int]) -> bytes:
    """The arguments and the environment of these processes."""
    seen = b""
    for pid in pids:
        with contextlib.suppress(OSError):
            seen += Path(f"/proc/{pid}/cmdline").read_bytes()
            seen += Path(f"/proc/{pid}/environ").read_bytes()
    return seen


@pytest.mark.parametrize("step", STEPS)
async def test_the_token_is_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """At no step: not in an argument or the environment of a process, not in a file. Nor is any
    other secret of the worker."""
    monkeypatch.setenv("WEBHOOK_SECRET", "canary-1")
    async with world(tmp_path) as here:
        here.github.put_file(REPOSITORY, "src/a.py", "x" * 5000)
        monkeypatch.setenv("PATH", slow_git(tmp_path / "bin", step, GIT))
        task = asyncio.create_task(here.taken())
        await until(lambda: git_is_at(here, step))
        pids = descendants(os.getpid())
        seen, (token,) = seen_of(pids), here.tokens()
        assert set(processes(str(here.folder))) < set(pids)
        assert b"worker.checkout.child" in seen
        assert b"GIT_DIR=" in seen
        files = content(here.folder)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert token.encode() not in seen + b"".join(files.values())
        assert b"canary" not in seen
        assert "x-access-token" not in str(seen + b"".join(files.values()))
        await until(lambda: not processes(str(here.folder)), 5)
        assert not here.left_over()


async def test_the_token_is_not_on_disk_afterwards(tmp_path: Path) -> None:
    """Grepped in every byte below the folder, after a success and after failures."""
    async with world(tmp_path) as here:
        await here.taken()
        here.github.put_file(REPOSITORY, "new.py", "")
        here.github.fail(PACKS, "apply then 502")
        await here.failure()
        here.github.fail(PACKS, "403 secondary")
        await here.failure()
        tokens = [token.encode() for token in here.tokens()]
        assert tokens
        bytes_there = b"".join(content(here.folder).values())
        assert b"# api" in bytes_there
        assert not any(token in bytes_there for token in tokens)


@pytest.mark.parametrize("step", STEPS)
async def test_a_cancelled_fetch_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Cancelled once or twice, at whatever step git is: no process, no folder, no lock."""
    async with world(tmp_path) as here:
        for times in (1, 2):
            with monkeypatch.context() as patch:
                patch.setenv("PATH", slow_git(tmp_path / f"bin{times}", step, GIT))
                task = asyncio.create_task(here.taken())
                await until(lambda: git_is_at(here, step))
                for _ in range(times):
                    task.cancel()
                    await asyncio.sleep(0)
                with pytest.raises(asyncio.CancelledError):
                    await task
            await until(lambda: not processes(str(here.folder)), 5)
            await until(lambda: not here.left_over(), 5)
        assert tuple((await here.taken(wait_seconds=5)).files) == ("README.md",)


@pytest.mark.parametrize("step", STEPS)
async def test_git_that_takes_too_long_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """With its children, and with its own word; so is a server that does not go on."""
    async with world(tmp_path) as here:
        with monkeypatch.context() as patch:
            patch.setenv("PATH", slow_git(tmp_path / "bin", step, GIT))
            failed = await here.failure(wall_seconds=1)
        assert (failed.reason, failed.retryable) == ("timeout", True)
        await until(lambda: not processes(str(here.folder)), 5)
        here.github.fail(PACKS, "hang after applying", times=1)
        assert (await here.failure(wall_seconds=1)).reason == "timeout"
        assert tuple((await here.taken()).files) == ("README.md",)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_worker_that_is_killed(tmp_path: Path, step: str, number: signal.Signals) -> None:
    """It takes git with it; what it had begun is not taken for whole, and the next one removes it
    and makes the tree."""
    async with world(tmp_path) as here:
        path = slow_git(tmp_path / "bin", step, GIT)
        async with another_worker(here, path=path) as worker:
            await until(lambda: git_is_at(here, step))
            assert here.left_over()
            worker.send_signal(number)
            worker.wait(5)
            await until(lambda: not processes(str(here.folder)), 5)
        assert here.left_over()
        assert not (here.shelf / "1").exists()
        assert tuple((await here.taken(wait_seconds=5)).files) == ("README.md",)
        assert not here.left_over()


async def test_the_lock_is_held_while_anything_lives(tmp_path: Path) -> None:
    """Where something of a dead worker's outlives it, nobody makes a tree beside it."""
    async with world(tmp_path) as here:
        path = slow_git(tmp_path / "bin", "ls-tree", GIT, "setsid sleep 600 & sleep 60")
        async with another_worker(here, path) as worker:
            await until(lambda: any(b"600" in arguments_of(pid) for pid in descendants(worker.pid)))
            (left,) = [pid for pid in descendants(worker.pid) if b"600" in arguments_of(pid)]
            worker.kill()
            worker.wait(5)
        with pytest.raises(CheckoutFailed, match="busy"):
            await here.taken(wait_seconds=0.2)
        os.kill(left, signal.SIGKILL)
        assert tuple((await here.taken(wait_seconds=5)).files) == ("README.md",)


async def test_a_worker_that_is_killed_while_it_receives(tmp_path: Path) -> None:
    """The same, before there is a git."""
    async with world(tmp_path) as here:
        here.github.fail(PACKS, "hang after applying", times=1)
        async with another_worker(here) as worker:
            await until(here.fetches)
            worker.kill()
            worker.wait(5)
        assert here.left_over()
        assert tuple((await here.taken(wait_seconds=5)).files) == ("README.md",)
        assert not here.left_over()


async def test_a_worker_that_is_killed_while_it_uses_a_tree(tmp_path: Path) -> None:
    """Its hold ends with it: the place is free for another commit."""
    async with world(tmp_path) as here:
        first = await here.taken()
        holder = f"""
            import sys, time
            from pathlib import Path
            from worker.checkout.slots import try_lock
            lock = try_lock(Path({str(here.shelf / "1.lock")!r}), shared=True)
            print("held", flush=True)
            time.sleep(60)
        """
        command = [sys.executable, "-c", textwrap.dedent(holder)]
        held = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220
        with held as worker:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "held\n"
            new = here.github.put_file(REPOSITORY, "new.py", "")
            assert (await here.taken(new)).root != first.root
            worker.kill()
        newest = here.github.put_file(REPOSITORY, "newest.py", "")
        assert (await here.taken(newest)).root == first.root


async def test_two_processes_share_one_fetch(tmp_path: Path) -> None:
    """Two workers on one machine: one fetches, both read the same tree."""
    async with world(tmp_path) as here, another_worker(here) as one, another_worker(here) as two:
        said = [await asyncio.to_thread(said_by, worker) for worker in (one, two)]
        assert said == [f"{here.shelf}/1/tree README.md\n"] * 2
        assert here.fetches() == 1


@pytest.mark.parametrize("size", ["40k", "400k", "700k"])
async def test_a_full_disk(tmp_path: Path, size: str) -> None:
    """Wherever it is full: while the pack is received, indexed, or the tree written."""
    async with world(tmp_path) as here:
        here.github.put_file(REPOSITORY, "a.bin", os.urandom(150_000).hex())
        here.github.put_file(REPOSITORY, "b.bin", os.urandom(150_000).hex())
        here.folder.mkdir()
        mount = f"mount -t tmpfs -o size={size} tmpfs {here.folder}"
        token = (await here.authority.header(here.installation)).removeprefix("token ")
        arguments = [sys.executable, "-c", textwrap.dedent(WORKER)]
        inside = [*arguments, here.url, str(here.folder), here.head]
        command = ["unshare", "-rm", "sh", "-c", f'{mount} && exec "$@"', "sh", *inside]
        done = await asyncio.to_thread(
            subprocess.run, command, input=f"{token}\n", capture_output=True, text=True, check=False
        )
        if "unshare" in done.stderr or "mount" in done.stderr:
            pytest.skip("a small disk takes the right to mount one")
        assert done.stdout.startswith("disk-full: "), done.stderr
        assert token not in done.stdout
