"""The resource watch, window after window: fetched once, told in one file, nothing on GitHub."""

import asyncio
import contextlib
import json
from datetime import timedelta

import pytest

from ledger.records import LEDGER
from sandbox.web.samples import Release, feed
from tests.simulation.invariants import writes
from tests.simulation.virtual import START
from tests.simulation.world import Faults, Killed, World, world
from triage.contract import Status, write_scope
from triage.identifiers import JobKey
from triage.plan import Cost
from worker import recovery, windows
from worker.ports import AgentFailed, NotFetched, Obstacle, WatchRequest
from worker.stages.settling import RunReport

WATCH = JobKey.WATCH
FEED, PAGE = "https://releases.example/feed.atom", "https://status.example/"


def watching(*urls: str) -> str:
    """A policy with the watch alone, whose window fell due some hours ago."""
    due = START - timedelta(hours=6)
    schedule = {"every": "daily", "at": f"{due:%H}:00", "timezone": "UTC"}
    kinds = {FEED: "feed", PAGE: "page"}
    resources = [
        {"name": url.split("/")[2], "url": url, "kind": kinds.get(url, "page")} for url in urls
    ]
    return json.dumps({"jobs": {"resource-watch": {"schedule": schedule, "resources": resources}}})


def put(w: World, *versions: str, page: str = "All is well") -> None:
    """The web as it is from now on."""
    at = w.clock.now()
    releases = [Release(version, at, f"Notes of {version}") for version in versions]
    atom = feed("Releases", releases)
    w.web.put(FEED, str(atom.body), at, atom.media_type)
    w.web.put(PAGE, f"<p>{page}</p>", at)


def report(w: World) -> str:
    """The newest file."""
    return list(w.artifacts.files.values())[-1]


async def day(w: World) -> RunReport:
    """The next day's window."""
    w.move(days=1)
    return await w.run()


async def test_days_build_on_each_other() -> None:
    """First seen; then what is new since, in the model's words; then nothing."""
    async with world([], policy=watching(FEED, PAGE), job=WATCH) as w:
        put(w, "1.0")
        assert (await w.run()).status is Status.COMPLETED
        assert w.agent.trees == []
        put(w, "1.1", "1.0")
        w.move(days=1)
        assert (await w.run()).status is Status.COMPLETED
        request = w.agent.trees[-1]
        assert isinstance(request, WatchRequest)
        assert [item.name for item in request.changed] == ["releases.example"]
        assert "Something is new there" in report(w)
        assert "1.1" in report(w)
        assert (await day(w)).status is Status.NO_CHANGE
        assert len(w.agent.trees) == 1
        assert writes(w) == []
        [run] = [run for run in await w.runs() if run.key.window == "2026-03-05"]
        assert write_scope(run.inputs) == []


async def test_same_window_is_reused_unfetched() -> None:
    """The same window again asks nobody; a forced one fetches again, into the same file."""
    async with world([], policy=watching(FEED), job=WATCH) as w:
        put(w, "1.0")
        await w.run()
        assert (await w.run()).outcome == "reused"
        assert w.web.asked == [FEED]
        put(w, "1.1", "1.0")
        await w.run(windows.Ask(by="hand", forced="7"))
        assert w.web.asked == [FEED, FEED]
        assert len(w.artifacts.files) == 1
        assert report(w).count("## Run `") == 2
        assert "Something is new there" in report(w)


async def test_new_allow_list_is_a_new_input() -> None:
    """Another list in the same window is another run; the file keeps both."""
    async with world([], policy=watching(FEED), job=WATCH) as w:
        put(w, "1.0")
        await w.run()
        w.put_policy(watching(FEED, PAGE))
        await w.run()
        assert len({run.key.input_version for run in await w.runs()}) == 2
        assert report(w).count("## Run `") == 2


@pytest.mark.parametrize(
    "instant", ["after fetcher.fetch", "after runs.save_snapshot", "after runs.save_plan"]
)
async def test_killed_and_gone_on(instant: str) -> None:
    """What was fetched into a snapshot is not fetched again."""
    async with world([], policy=watching(FEED), job=WATCH) as w:
        put(w, "1.0")
        faults = Faults()
        faults.kill_at(instant)
        with pytest.raises(Killed):
            await w.run(faults=faults)
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]
        assert len(w.web.asked) == (2 if instant == "after fetcher.fetch" else 1)


async def test_resource_that_is_down_changes_nothing() -> None:
    """It is said, and the next window compares with what was read last."""
    async with world([], policy=watching(PAGE), job=WATCH) as w:
        put(w, page="All is well")
        await w.run()
        at = w.clock.now()
        down = NotFetched(
            PAGE, PAGE, at, Obstacle.STATUS, "503 Service Unavailable", retryable=True
        )
        w.web.pages[PAGE] = down
        assert (await day(w)).status is Status.NO_CHANGE
        assert "status: 503" in report(w)
        put(w, page="Partly out of order")
        assert (await day(w)).status is Status.COMPLETED
        assert "Something is new there" in report(w)


async def test_failed_watch_tells_it_the_next_time() -> None:
    """A change that the model could not tell of is still a change in the next window."""
    async with world([], policy=watching(FEED), job=WATCH) as w:
        put(w, "1.0")
        await w.run()
        put(w, "1.1", "1.0")
        w.agent.fails = [AgentFailed("auth", "401", retryable=False, cost=Cost())]
        assert (await day(w)).status is Status.FAILED_BEFORE_WRITE
        assert (await day(w)).status is Status.COMPLETED
        assert "1.1" in report(w)


@pytest.mark.parametrize(
    "instant",
    [
        "before repositories.report",
        "before repositories.save_report",
        "after repositories.save_report",
        "before runs.save_effects",
        "before runs.settle",
    ],
)
async def test_two_runs_of_a_window_at_once(instant: str) -> None:
    """Neither loses the other's section, in the ledger or in the file, whoever writes between."""
    async with world([], policy=watching(FEED), job=WATCH) as w:
        put(w, "1.0")
        faults = Faults()

        async def meanwhile() -> None:
            other = await w.run(windows.Ask(by="hand", forced="2"), owner="worker-2")
            assert other.status is not None
            assert other.status.final

        faults.at(instant, meanwhile)
        first = await w.run(windows.Ask(by="hand", forced="1"), faults=faults)
        assert first.status is not None
        assert first.status.final
        assert not faults.armed
        [path] = w.artifacts.files
        kept = await w.ledger.repositories.report(path)
        assert kept is not None
        assert report(w) == kept.text
        assert report(w).count("## Run `") == 2
        assert "forced-1`" in report(w)
        assert "forced-2`" in report(w)


async def test_lost_ledger_keeps_the_file() -> None:
    """What was known of the resources is lost, and said so: each is seen for the first time. The
    sections of the window's file stand."""
    async with world([], policy=watching(FEED), job=WATCH) as w:
        put(w, "1.0")
        await w.run(windows.Ask(by="hand", forced="1"))
        await w.lose_ledger()
        await recovery.recover(LEDGER, w.ports())
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]
        assert report(w).count("## Run `") == 2
        assert "1 first" in report(w).rpartition("## Run `")[2]
        put(w, "1.1", "1.0")
        assert (await day(w)).status is Status.COMPLETED
        assert "Something is new there" in report(w)


async def test_worker_that_dies_each_time_has_told_nothing() -> None:
    """A plan stands, and no report: that is a failure, not a day without news."""
    async with world([], policy=watching(FEED), job=WATCH) as w:
        put(w, "1.0")
        await w.install()
        while (pause := await w.next_due()) is not None:
            await asyncio.sleep(pause)
            faults = Faults()
            faults.kill_at("before repositories.report")
            with contextlib.suppress(Killed):
                await w.tick(faults=faults)
        [run] = await w.runs()
        assert run.status is Status.FAILED_BEFORE_WRITE
        assert run.reason == "its worker died each time"
