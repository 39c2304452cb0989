"""Triage with the code at hand: the comment says where to look."""

from tests.simulation.invariants import nothing_more
from tests.simulation.world import REPOSITORY, policy_file, world
from triage.contract import Status
from worker.ports import CheckoutFailed


async def test_comment_names_component_and_files() -> None:
    """Those that are there; a file that the model made up is dropped."""
    async with world(["Bug: no way in by login"], policy=policy_file(code=True)) as w:
        w.github.put_file(REPOSITORY, "src/door.py", "def login():\n    raise\n")
        assert (await w.run()).status is Status.COMPLETED
        [comment] = w.bot_comments(1)
        assert "- Where to look: the login: src/door.py\n" in comment
        assert "no/such.file" not in comment
        await nothing_more(w)


async def test_without_code_nothing_is_checked_out() -> None:
    """No checkout, no tool, and nothing about places."""
    async with world(["Bug: no way in by login"], policy=policy_file()) as w:
        await w.run()
        assert w.checkouts.asked == []
        assert w.agent.asked[0].root is None
        assert "Where to look" not in w.bot_comments(1)[0]


async def test_no_checkout_for_good() -> None:
    """A repository that is too large is triaged without its code, and the log says so."""
    async with world(["Bug: a"], policy=policy_file(code=True)) as w:
        w.checkouts.fails = [CheckoutFailed("too-large", "over 256 MiB", retryable=False)]
        assert (await w.run()).status is Status.COMPLETED
        assert [line for line in w.lines if line.startswith("CHECKOUT-FAILED run=")]
        assert w.agent.asked[0].root is None


async def test_no_checkout_for_now() -> None:
    """What may pass is waited for: failed before any write, and tried again."""
    async with world(["Bug: a"], policy=policy_file(code=True)) as w:
        w.checkouts.fails = [CheckoutFailed("timeout", "180 s", retryable=True)]
        report = await w.run()
        assert report.status is Status.FAILED_BEFORE_WRITE
        assert report.reason == "no checkout: timeout: 180 s"
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]
