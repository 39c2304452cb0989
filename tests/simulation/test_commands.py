"""``/retriage``: who may say it, what it does, and how it is answered."""

import json

import pytest

from ledger.records import Due, DueKind
from tests.simulation.invariants import check, nothing_more
from tests.simulation.world import (
    BOT,
    REPOSITORY,
    Faults,
    Killed,
    World,
    policy_file,
    world,
)
from triage.asks import Installed
from triage.contract import Evidence, RunRecord, Status
from triage.delivery import interpret
from triage.identifiers import EffectKind
from triage.plan import Cost
from worker import commands
from worker.ports import AgentFailed, ReadFailed

pytestmark = pytest.mark.anyio

SEEN, DONE, REFUSED = "eyes", "+1", "confused"


async def last_run(w: World) -> RunRecord:
    """The newest run."""
    return (await w.runs())[-1]


async def test_command_edits_the_one_comment() -> None:
    """The text changed, ``/retriage`` is said: the comment is edited in place, the bot's own label
    gives way to the other one of its group; 👀 when it is seen, 👍 when it is done."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        await w.run()
        before = w.own_comments(1)[0]
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, title="Enhancement: a")
        reports = await w.say("alice", 1, "/retriage")
        assert [report.status for report in reports] == [Status.COMPLETED]
        after = w.own_comments(1)
        assert [item.id for item in after] == [before.id]
        assert "`enhancement`" in after[0].body
        assert w.github.labels(REPOSITORY, 1) == ["enhancement"]
        assert w.reactions(1) == [SEEN, DONE]
        await nothing_more(w, undone=True)


async def test_command_on_an_issue_that_was_never_looked_at() -> None:
    """Without a daily run before: one comment, one label."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.install()
        w.github.add_collaborator(REPOSITORY, "alice", "write")
        reports = await w.say("alice", 1, "/retriage")
        assert [report.status for report in reports] == [Status.COMPLETED]
        assert w.github.labels(REPOSITORY, 1) == ["bug"]
        assert len(w.bot_comments(1)) == 1
        await w.run()
        await nothing_more(w)


async def test_redelivery_is_reuse() -> None:
    """GitHub delivers the command five times: one job, one run, one comment. A queue that gives the
    job out again and again brings no more about: each reuses the run."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.install()
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        w.github.outbox.drain()
        w.github.as_user("alice").comment(REPOSITORY, 1, "/retriage")
        guid = w.github.webhooks.deliveries[-1].guid
        for _ in range(4):
            w.github.webhooks.redeliver(guid)
        reports = await w.deliver()
        assert [report.outcome for report in reports] == ["ran"]
        w.queue += [Due.ask(guid, 0)] * 4
        assert [report.outcome for report in await w.work()] == ["reused"] * 4
        assert w.reactions(1) == [SEEN, DONE]
        assert len(w.agent.asked) == 1
        await nothing_more(w)


@pytest.mark.parametrize(
    ("needed", "who", "obeyed"),
    [
        ("read", "stranger", True),
        ("triage", "stranger", False),
        ("triage", "reader", False),
        ("triage", "triager", True),
        ("write", "triager", False),
        ("write", "writer", True),
        ("author", "reporter", True),
        ("author", "stranger", False),
        ("author", "triager", True),
    ],
)
async def test_permission(needed: str, who: str, obeyed: bool) -> None:
    """The policy names what ``/retriage`` needs; who has less gets 😕, and nothing is written."""
    policy = policy_file(commands={"retriage": needed})
    async with world(["Bug: a"], policy=policy) as w:
        await w.install()
        for login, role in (("reader", "read"), ("triager", "triage"), ("writer", "write")):
            w.github.add_collaborator(REPOSITORY, login, role)
        await w.say(who, 1, "/retriage")
        assert w.reactions(1) == ([SEEN, DONE] if obeyed else [SEEN, REFUSED])
        assert len(w.bot_comments(1)) == int(obeyed)
        assert w.github.labels(REPOSITORY, 1) == (["bug"] if obeyed else [])
        await check(w)


async def test_a_bot_gives_no_commands() -> None:
    """Neither another bot nor the bot itself, whatever they write."""
    async with world(["Bug: a"], policy=policy_file(commands={"retriage": "read"})) as w:
        await w.install()
        w.github.add_app("other", 43)
        for slug in ("other", "retriage"):
            w.github.as_app(slug).comment(REPOSITORY, 1, "/retriage")
        assert await w.deliver() == []
        assert await w.runs() == []


@pytest.mark.parametrize("text", ["/retriage now", "/retriage --force --please", "/retriage undo"])
async def test_unknown_argument(text: str) -> None:
    """What the bot does not understand it refuses visibly, and does nothing else."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.install()
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        assert await w.say("alice", 1, text) == []
        assert w.reactions(1) == [SEEN, REFUSED]
        assert await w.runs() == []


async def test_command_on_a_closed_issue() -> None:
    """Whoever asks for a closed issue gets it."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.install()
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        w.github.as_user("alice").close(REPOSITORY, 1)
        reports = await w.say("alice", 1, "/retriage")
        assert [report.status for report in reports] == [Status.COMPLETED]
        assert w.github.labels(REPOSITORY, 1) == ["bug"]
        assert len(w.bot_comments(1)) == 1
        await nothing_more(w)


async def test_command_on_a_locked_issue() -> None:
    """GitHub lets no App comment there: nothing is written, the model is not asked."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.install()
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        w.github.as_user("alice").lock(REPOSITORY, 1)
        reports = await w.say("alice", 1, "/retriage")
        assert [report.status for report in reports] == [Status.NO_CHANGE]
        assert not w.agent.asked
        await nothing_more(w)


async def test_observe_mode_answers_nothing() -> None:
    """Not even by a reaction; what it would write is in the report."""
    async with world(["Bug: a"], policy=policy_file(mode="observe")) as w:
        await w.install()
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        w.github.as_user("alice").comment(REPOSITORY, 1, "/retriage")
        before = w.github.state()["repositories"]
        reports = await w.deliver()
        assert [report.status for report in reports] == [Status.COMPLETED]
        assert w.github.state()["repositories"] == before
        assert "issue 1: Bug: a" in w.artifacts.files[reports[0].artifact]


async def test_failure_is_answered_without_a_word() -> None:
    """The model refuses for good: 😕, no comment, and the log says why."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.install()
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        w.agent.fails = [AgentFailed("budget", "spent", retryable=False, cost=Cost())]
        reports = await w.say("alice", 1, "/retriage")
        assert [report.status for report in reports] == [Status.FAILED_BEFORE_WRITE]
        assert w.reactions(1) == [SEEN, REFUSED]
        assert w.bot_comments(1) == []
        await check(w)


async def test_on_the_summary_issue_it_is_the_window_again() -> None:
    """``/retriage`` on the summary takes the window's issues again, whatever was decided of them,
    and answers with 👀 and 👍; summary and comments are edited, none is added."""
    async with world(["Bug: a", "Question: b"], policy=policy_file()) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        await w.run()
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, title="Enhancement: a")
        reports = await w.say("alice", 3, "/retriage")
        assert [report.status for report in reports] == [Status.COMPLETED]
        snapshot = await w.ledger.runs.snapshot(reports[0].dedupe_key)
        assert snapshot is not None
        assert len(snapshot.issues) == 2
        assert w.github.labels(REPOSITORY, 1) == ["enhancement"]
        assert w.reactions(3) == [SEEN, DONE]
        assert len(w.summaries()) == 1
        assert [len(w.bot_comments(number)) for number in (1, 2, 3)] == [1, 1, 0]
        await nothing_more(w, undone=True)


POINTS = [
    "after runs.save_snapshot",
    "after runs.save_plan",
    "after effects.claim",
    "before writer.create_comment",
    "after writer.create_comment",
    "after effects.acknowledge",
    "before writer.add_labels",
    "after writer.add_labels",
    "after reader.comment",
    "before writer.create_issue",
    "after writer.create_issue",
]


@pytest.mark.parametrize("title", ["Bug: a", "Question: a"], ids=["same", "changed"])
async def test_command_during_the_daily_run(title: str) -> None:
    """At any instant of the daily run somebody says ``/retriage``, with the issue's text as it was
    or changed: both runs end, one comment and one label stand, and they are of one mind. 😕 tells
    who asked that another run had the issue."""
    for point in POINTS:
        await said_at(point=point, title=title)


async def said_at(*, point: str, title: str) -> None:
    """One story of the test above."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        faults = Faults()

        async def say() -> None:
            w.github.as_user("reporter").edit_issue(REPOSITORY, 1, title=title)
            await w.say("alice", 1, "/retriage")

        faults.at(point, say)
        await w.run(faults=faults)
        await w.settle()
        runs = await w.runs()
        assert [run.status.final for run in runs] == [True, True], point
        label = w.github.labels(REPOSITORY, 1)
        assert label in (["bug"], ["question"]), point
        assert f"Triage: `{label[0]}`" in w.bot_comments(1)[0], point
        blocked = any(effect.reason == "blocked" for effect in runs[-1].effects)
        assert w.reactions(1) == [SEEN, REFUSED if blocked else DONE], point
        await nothing_more(w, undone=True)


async def test_two_commands_at_once() -> None:
    """A second ``/retriage`` while the first one's edit is under way: one of them finds the other's
    claim, and skips what it holds."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        await w.run()
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, title="Question: a")
        faults = Faults()

        async def again() -> None:
            await w.say("alice", 1, "/retriage")

        faults.at("before writer.edit_comment", again)
        w.github.as_user("alice").comment(REPOSITORY, 1, "/retriage")
        await w.deliver(faults=faults, owner="worker-2")
        first, second = (await w.runs())[1:]
        assert {first.status, second.status} == {Status.COMPLETED}
        assert {effect.evidence for effect in second.effects} == {Evidence.SKIPPED}
        assert {effect.reason for effect in second.effects} == {"blocked"}
        assert w.github.labels(REPOSITORY, 1) == ["question"]
        await nothing_more(w, undone=True)


async def test_own_label_of_another_bot_stays() -> None:
    """A label whose last ``labeled`` event is another bot's is not the bot's to remove."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        await w.run()
        w.github.add_app("other", 43)
        w.github.as_app("other").unlabel(REPOSITORY, 1, "bug")
        w.github.as_app("other").label(REPOSITORY, 1, "bug")
        w.github.outbox.drain()
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, title="Question: a")
        await w.say("alice", 1, "/retriage")
        unlabel = [e for e in (await last_run(w)).effects if e.kind is EffectKind.UNLABEL]
        assert [effect.reason for effect in unlabel] == ["human-labelled"]
        assert w.github.labels(REPOSITORY, 1) == ["bug"]
        assert [event for event in w.github.events(REPOSITORY, 1) if event[1] == BOT] == [
            ("labeled", BOT)
        ]
        await nothing_more(w)


async def asks_due(w: World) -> int:
    """How many asks of deliveries stand as due."""
    return sum(due.kind is DueKind.ASK for due, _ in await w.ledger.due.upcoming())


async def test_an_ask_stays_due_until_it_is_done() -> None:
    """GitHub is away while an installation is taken in; later it is not."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        ask, due = Installed(installation=w.installation), Due.ask("d-1", 0)
        await w.ledger.due.add(due, w.clock.now())
        w.github.fail("GET ", "502", times=None)
        with pytest.raises(ReadFailed):
            await commands.handle_due(ask, due, w.ports())
        assert await asks_due(w) == 1
        w.github.faults.clear()
        await commands.handle_due(ask, due, w.ports())
        assert await asks_due(w) == 0
        await w.window()
        await nothing_more(w)


async def test_an_ask_that_is_refused_for_now_comes_again() -> None:
    """The worker of a command died before it had saved the run: the ask is refused while the lease
    lives, is due when that ends, and is then done."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.install()
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        w.github.as_user("alice").comment(REPOSITORY, 1, "/retriage")
        delivery = w.github.outbox.drain()[-1]
        asked = interpret(
            delivery.event, json.loads(delivery.body), bot_ids=frozenset(), keys=w.keys
        )
        assert isinstance(asked, tuple)
        faults, due = Faults(), Due.ask("d-1", 0)
        faults.kill_at("after leases.acquire")
        with pytest.raises(Killed):
            await commands.handle_due(asked[0], due, w.ports("worker-1", faults))
        report = await commands.handle_due(asked[0], due, w.ports("worker-2"))
        assert report is not None
        assert report.outcome == "refused"
        ((again, at),) = [item for item in await w.ledger.due.upcoming() if item[0] == due]
        assert (again, at) == (due, report.until)
        await w.lapse()
        report = await commands.handle_due(asked[0], due, w.ports("worker-2"))
        assert report is not None
        assert report.status is Status.COMPLETED
        assert await asks_due(w) == 0
        assert w.reactions(1) == [SEEN, DONE]
        await nothing_more(w)
