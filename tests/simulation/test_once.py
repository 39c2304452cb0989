"""The main job, and the same window again."""

import pytest

from tests.simulation.world import world
from triage.contract import Status

pytestmark = pytest.mark.anyio


async def test_first_run_writes_and_second_reuses() -> None:
    """Issues are labelled and commented once; the same window again writes nothing."""
    async with world(["Bug: a", "Question: b", "Enhancement: c"]) as w:
        first = await w.run()
        assert first.status is Status.COMPLETED
        writes = len([r for r in w.github.requests() if r.method != "GET"])
        again = await w.run()
        assert again.outcome == "reused"
        assert again.drift == ()
        assert len([r for r in w.github.requests() if r.method != "GET"]) == writes
        assert len(set(w.live_markers())) == len(w.live_markers()) == 4
