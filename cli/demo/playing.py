"""``retriage demo`` from its options to its exit code."""

import asyncio
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

from cli.demo import nights, scene
from cli.demo.backlog import Backlog
from cli.demo.mishaps import Mishaps
from cli.demo.nights import Nights
from cli.demo.stage import Bounds, Stage, staged
from cli.demo.story import Story
from cli.demo.telling import Tale
from cli.demo.watching import StepError, Watch
from cli.demo.ways_in import Entrance, opened
from cli.failures import Code, CommandError
from cli.options import did_you_mean
from cli.terminal import clean, stderr
from ledger.connection import connect
from ledger.ledger import open_ledger
from sandbox import issues_csv
from sandbox.issues_csv import IssueRow
from triage.identifiers import JobKey

QUICK = Bounds(lease=6, lock_delay=5, request=4, tick=1)
"""A killed worker's run is taken over after eleven seconds."""

REAL = Bounds()
"""As in production: nothing is killed, and short bounds would cost requests."""

Plot = Callable[[Watch, Entrance, Tale], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Wish:
    """The command line."""

    issues: Path | None
    repo: str | None
    as_json: bool
    keep: bool
    job: str = JobKey.DAILY


def play(wish: Wish) -> int:
    """Play it and say what was seen; gives the exit code. Raises CommandError."""
    tale = Tale()
    with _ended_by_signals():
        if wish.job == JobKey.REVIEW:
            if wish.issues is not None or wish.repo is not None:
                raise CommandError(f"--job {JobKey.REVIEW} has a story of its own: no --issues")
            with staged(nights.build, QUICK, workers=1, clock=False) as stage:
                return _told(stage, tale, wish, _nights)
        if wish.job != JobKey.DAILY:
            known: list[str] = [JobKey.DAILY, JobKey.REVIEW]
            hint = did_you_mean(wish.job, known) or f"; there is {' and '.join(known)}"
            raise CommandError(f"--job {clean(wish.job)!r} has no story{hint}")
        if wish.issues is None:
            if wish.repo is not None:
                raise CommandError("--repo names a repository of a file: add --issues CSV")
            with staged(scene.story, QUICK, workers=3) as stage:
                return _told(stage, tale, wish, _story)
        name, rows = _chosen(wish.issues, wish.repo)
        fill = partial(scene.backlog, name=name, rows=rows)
        with staged(fill, REAL, workers=2) as stage:
            return _told(stage, tale, wish, partial(_backlog, name=name, issues=len(rows)))


def _told(stage: Stage, tale: Tale, wish: Wish, plot: Plot) -> int:
    receiver = ""

    async def played() -> None:
        nonlocal receiver
        async with connect(stage.redis_url) as client:
            watch = Watch(stage, open_ledger(client, stage.bounds.timing()))
            with tale.step("receiver, clock, workers, ledger, GitHub and model are up"):
                entrance = await opened(watch)
            receiver = entrance.receiver
            await plot(watch, entrance, tale)

    try:
        asyncio.run(played())
    except StepError as error:
        tale.failed = error
        _show_logs(stage)
    if wish.as_json:
        tale.as_json()
        if tale.failed is not None:
            stderr().print(f"✗ {tale.failed.step}: {clean(str(tale.failed))}")
    else:
        tale.show(_next(wish))
    if wish.keep and receiver:
        _keep(stage, receiver)
    return Code.DONE if tale.failed is None else Code.FAILED


async def _story(watch: Watch, entrance: Entrance, tale: Tale) -> None:
    mishaps = Mishaps(watch)
    mishaps.arm()
    await Story(watch, entrance, tale, mishaps).play()


async def _nights(watch: Watch, entrance: Entrance, tale: Tale) -> None:
    await Nights(watch, entrance, tale).play()


async def _backlog(watch: Watch, entrance: Entrance, tale: Tale, *, name: str, issues: int) -> None:
    await Backlog(watch, entrance, tale, name, issues).play()


def _chosen(file: Path, repo: str | None) -> tuple[str, list[IssueRow]]:
    """The rows of one repository, and its name. Raises CommandError."""
    try:
        rows = issues_csv.load(file)
    except OSError as error:
        raise CommandError(f"--issues {file}: {error.strerror or type(error).__name__}") from error
    except ValueError as error:
        raise CommandError(f"--issues {clean(str(error))}") from error
    names = scene.repositories(rows)
    if not names:
        raise CommandError(f"--issues {file} has no issue")
    if repo is None and len(names) > 1:
        listed = ", ".join(clean(name) for name in names[:8])
        raise CommandError(f"--repo is missing: which repository of {file}? {listed}")
    wanted = names[0] if repo is None else repo
    chosen = [row for row in rows if row.repo.lower() == wanted.lower()]
    if not chosen:
        raise CommandError(
            f"--repo {clean(wanted)}: {file} has no issue of it{did_you_mean(wanted, names)}"
        )
    return chosen[0].repo, chosen[: scene.MOST_ISSUES]


# --- What is left at the end --------------------------------------------------------------------


def _next(wish: Wish) -> list[str]:
    if wish.keep:
        return []
    return [
        f"Look around: {_program()} demo --keep",
        f"Your own repository: {_program()} run OWNER/REPO --mode observe",
    ]


def _keep(stage: Stage, receiver: str) -> None:
    """Leave it running until a signal comes."""
    file, github = stage.env_file(), stage.settings["GITHUB_API_URL"]
    program, say = _program(), stderr().print
    say()
    say("Everything is still running, until Ctrl-C:")
    say(f"  GitHub    {github}")
    say(f"  Receiver  {receiver}/healthz  {receiver}/readyz  {receiver}/metrics")
    say(f"  Logs      {stage.folder.path}/logs")
    say(f"  Ledger    (. {file} && {program} runs)")
    say(f"            (. {file} && {program} show KEY)")
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        say("Ended: nothing of it is left.")


def _program() -> str:
    """How this command was called: a copy of the line must work."""
    called = Path(sys.argv[0])
    if called.name != "retriage":
        return f"{Path(sys.executable).name} -m cli"
    if shutil.which("retriage") == str(called):
        return "retriage"
    here = Path.cwd()
    return str(called.relative_to(here) if called.is_relative_to(here) else called)


def _show_logs(stage: Stage) -> None:
    """The ends of all logs: the folder is about to go."""
    for process in stage.started:
        for line in process.lines()[-8:]:
            stderr().print(f"{process.name}: {clean(line)}")


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end it as an exception, so that everything is taken down."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, end) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
