"""The store of sessions: the SDK's own rules for it, and real sessions that go on elsewhere."""

import itertools
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ResultError, ResultMessage, SessionKey, query
from claude_agent_sdk.testing import run_session_store_conformance

from ledger.connection import connect
from ledger.ledger import Ledger, open_ledger
from ledger.memory import Promotion, ReviewState, StagedSession, TranscriptLine
from ledger.records import Lease
from ledger.timing import LedgerTiming
from sandbox.model import ModelServer
from sandbox.model.record import RequestRecord
from triage.plan import Plan
from worker.agent import ClaudeAgent
from worker.agent.adapter import Host, bundled_cli
from worker.agent.store import UNANSWERED, LedgerSessionStore
from worker.ports import (
    LedgerUnavailableError,
    SessionAnswer,
    SessionRequest,
    StateNotSavedError,
)

REPOSITORY = 7
SCHEMA = {
    "type": "object",
    "properties": {"decisions": {"type": "array", "items": {"type": "object"}}},
    "required": ["decisions"],
}
KEY: SessionKey = {"project_key": "-work", "session_id": "s"}


@pytest.fixture
async def ledger(redis_url: str) -> AsyncIterator[Ledger]:
    """A first ledger on the real server."""
    async with connect(redis_url) as client:
        opened = open_ledger(client, LedgerTiming())
        await opened.epochs.ensure(first=True)
        yield opened


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def model(running: ModelServer) -> ModelServer:
    running.reset()
    return running


class Machine:
    """A worker's machine: a home, a config folder and a checkout of its own."""

    def __init__(self, folder: Path, model: ModelServer, checkout: Path | None = None) -> None:
        self.folder = folder
        self.checkout = checkout or folder / "checkout"
        for path in (folder / "home", folder / "config", folder / "tmp", self.checkout):
            path.mkdir(parents=True, exist_ok=True)
        self._env = {
            "ANTHROPIC_API_KEY": "sk-test",
            "ANTHROPIC_BASE_URL": model.url,
            "HOME": str(folder / "home"),
            "CLAUDE_CONFIG_DIR": str(folder / "config"),
            "TMPDIR": str(folder / "tmp"),
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    async def ask(self, prompt: str, store: LedgerSessionStore, resume: str | None) -> str:
        """One session. Gives its id. Raises what the SDK raises."""
        options = ClaudeAgentOptions(
            cwd=self.checkout,
            cli_path=bundled_cli(),
            env=self._env,
            system_prompt={"type": "custom", "prompt": "Look.", "snapshot": False},
            output_format={"type": "json_schema", "schema": SCHEMA},
            tools=[],
            setting_sources=[],
            strict_mcp_config=True,
            verbatim_prompts=True,
            max_turns=4,
            resume=resume,
            session_store=store,
        )
        answered = ""
        async for message in query(prompt=prompt, options=options):
            if isinstance(message, ResultMessage):
                assert not message.is_error
                answered = message.session_id
        return answered


class Reviewer:
    """What a run does with its session: a copy, questions, and the plan with the new state."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._windows = itertools.count(1)

    async def lease(self) -> Lease:
        """The lease of another window's run."""
        window = next(self._windows)
        lease = await self.ledger.leases.acquire(
            f"daily-issue-triage:R{REPOSITORY}:2026-09-{window:02}:p0000000a", "w", f"t{window}"
        )
        assert lease is not None
        return lease

    async def staged(self, lease: Lease) -> StagedSession:
        """A copy of the session that the last review left."""
        last = await self.ledger.reviews.last(REPOSITORY)
        if last is None:
            return StagedSession(REPOSITORY, str(lease.fence))
        return StagedSession(REPOSITORY, str(lease.fence), last.session_id, last.session_length)

    async def save(self, lease: Lease, staged: StagedSession, session_id: str) -> None:
        """The plan, and with it the session."""
        length = await self.ledger.sessions.length(staged)
        state = ReviewState(
            repository_id=REPOSITORY,
            review_id="r",
            run=lease.dedupe_key,
            window="",
            fence=lease.fence,
            at=datetime(2026, 9, 16, tzinfo=UTC),
            commit="",
            files=0,
            files_digest="",
            version=1,
            review="{}",
            session_id=session_id,
            session_length=length,
        )
        plan = Plan(decisions=(), held=())
        await self.ledger.runs.save_plan(lease, plan, staged=Promotion(state, staged))


def said(request: RequestRecord) -> list[str]:
    """What the user says in a request, oldest first."""
    found: list[str] = []
    for message in request.body["messages"]:
        if message["role"] == "user":
            content = message["content"]
            blocks = content if isinstance(content, list) else [{"text": content}]
            found += [block["text"] for block in blocks if "text" in block]
    return found


async def test_it_is_what_the_sdk_asks_for(ledger: Ledger) -> None:
    """The SDK's own suite, each contract on a copy of its own, and none left out."""
    names = itertools.count(1)

    def fresh() -> LedgerSessionStore:
        return LedgerSessionStore(ledger.sessions, StagedSession(REPOSITORY, str(next(names))))

    await run_session_store_conformance(fresh)
    assert next(names) > 13


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_session_goes_on_on_another_machine(
    ledger: Ledger, model: ModelServer, tmp_path: Path, elsewhere: bool
) -> None:
    """Home and config folder of the first one are gone, and the checkout may be in another folder:
    the model is told the first conversation again."""
    reviewer = Reviewer(ledger)
    one = Machine(tmp_path / "one", model)
    lease = await reviewer.lease()
    staged = await reviewer.staged(lease)
    store = LedgerSessionStore(ledger.sessions, staged)
    session_id = await one.ask("The first night.", store, None)
    assert store.problem is None
    await reviewer.save(lease, staged, session_id)
    before = await ledger.sessions.kept(REPOSITORY, session_id)
    assert before.lines > 5

    checkout = None if elsewhere else one.checkout
    for name in ("home", "config"):
        shutil.rmtree(one.folder / name)
    two = Machine(tmp_path / "two", model, checkout)
    lease = await reviewer.lease()
    staged = await reviewer.staged(lease)
    store = LedgerSessionStore(ledger.sessions, staged)
    assert await two.ask("The second night.", store, staged.session_id) == session_id
    assert store.problem is None
    assert said(model.requests[-1])[:2] == ["The first night.", "The second night."]
    await reviewer.save(lease, staged, session_id)
    after = await ledger.sessions.kept(REPOSITORY, session_id)
    assert after.lines > before.lines
    assert after.bytes > before.bytes


async def test_the_agent_goes_on_from_the_ledger(
    ledger: Ledger, model: ModelServer, tmp_path: Path
) -> None:
    """Two workers with folders of their own; the first one's are gone as its session ends. Of a
    copy that does not take its lines, it says that nothing was saved."""
    reviewer = Reviewer(ledger)

    async def ask(prompt: str, staged: StagedSession) -> SessionAnswer:
        folder = tmp_path / prompt
        folder.mkdir()
        host = Host(stores=lambda copy: LedgerSessionStore(ledger.sessions, copy))
        agent = ClaudeAgent(
            model=None, api_key="k", base_url=model.url, api_retries=0, folder=folder, host=host
        )
        asked = SessionRequest("Look.", prompt, SCHEMA, max_turns=4, budget_usd=1, session=staged)
        return await agent.ask(asked)

    lease = await reviewer.lease()
    staged = await reviewer.staged(lease)
    first = await ask("The first night.", staged)
    assert first.saved
    await reviewer.save(lease, staged, first.session_id)

    lease = await reviewer.lease()
    staged = await reviewer.staged(lease)
    second = await ask("The second night.", staged)
    assert (second.session_id, second.saved) == (first.session_id, True)
    assert said(model.requests[-1])[:2] == ["The first night.", "The second night."]
    await reviewer.save(lease, staged, second.session_id)

    assert (await ledger.sessions.kept(REPOSITORY, first.session_id)).lines > staged.length
    staged = await reviewer.staged(await reviewer.lease())
    spoiled = TranscriptLine(KEY["project_key"], KEY["session_id"], "", "{}")
    await ledger.sessions.append(staged, [spoiled], after=0)
    assert not (await ask("The third night.", staged)).saved


async def test_an_attempt_that_died_leaves_nothing(
    ledger: Ledger, model: ModelServer, tmp_path: Path
) -> None:
    """It had its answer, and not its plan. The next attempt resumes what the night before left:
    neither question nor answer of the dead one is in it."""
    reviewer, machine = Reviewer(ledger), Machine(tmp_path, model)
    lease = await reviewer.lease()
    staged = await reviewer.staged(lease)
    store = LedgerSessionStore(ledger.sessions, staged)
    session_id = await machine.ask("The first night.", store, None)
    await reviewer.save(lease, staged, session_id)
    before = await ledger.sessions.kept(REPOSITORY, session_id)

    night = await reviewer.lease()
    dead = await reviewer.staged(night)
    await machine.ask("Lost.", LedgerSessionStore(ledger.sessions, dead), dead.session_id)
    assert await ledger.sessions.length(dead) > dead.length
    assert await ledger.sessions.kept(REPOSITORY, session_id) == before

    staged = replace(dead, name="again")
    store = LedgerSessionStore(ledger.sessions, staged)
    await machine.ask("Once more.", store, staged.session_id)
    assert said(model.requests[-1])[:2] == ["The first night.", "Once more."]
    await reviewer.save(night, staged, session_id)
    await machine.ask(
        "The third night.",
        LedgerSessionStore(ledger.sessions, await reviewer.staged(await reviewer.lease())),
        session_id,
    )
    heard = said(model.requests[-1])
    assert heard[:3] == ["The first night.", "Once more.", "The third night."]


async def test_a_session_that_is_cut_off_is_not_resumed(
    ledger: Ledger, model: ModelServer, tmp_path: Path
) -> None:
    """The SDK would go on from what is left of it, without a word: here it is none at all."""
    reviewer, machine = Reviewer(ledger), Machine(tmp_path, model)
    lease = await reviewer.lease()
    staged = await reviewer.staged(lease)
    store = LedgerSessionStore(ledger.sessions, staged)
    session_id = await machine.ask("The first night.", store, None)
    await reviewer.save(lease, staged, session_id)
    kept = await ledger.sessions.kept(REPOSITORY, session_id)
    longer = StagedSession(REPOSITORY, "longer", session_id, kept.lines + 1)
    other = Machine(tmp_path / "other", model, machine.checkout)
    with pytest.raises(ResultError) as caught:
        await other.ask("Go on.", LedgerSessionStore(ledger.sessions, longer), session_id)
    assert caught.value.subtype == "error_during_execution"
    assert len(model.requests) == 1


async def test_what_is_refused_is_a_problem(
    ledger: Ledger, model: ModelServer, tmp_path: Path
) -> None:
    """Somebody else wrote into the copy. The session ends as a success all the same, but nothing of
    it is kept, and there is no state to save."""
    staged = StagedSession(REPOSITORY, "1")
    other = TranscriptLine(KEY["project_key"], KEY["session_id"], "", "{}")
    await ledger.sessions.append(staged, [other], after=0)
    store = LedgerSessionStore(ledger.sessions, staged)
    assert await Machine(tmp_path, model).ask("Look.", store, None)
    assert store.problem == "the session's copy is not as its only writer left it"
    assert await ledger.sessions.length(staged) == 1
    await ledger.sessions.discard(staged)
    with pytest.raises(StateNotSavedError):
        await store.append(KEY, [{"type": "user"}])
    assert await ledger.sessions.length(staged) == 0


class Unreliable:
    """A ledger's sessions: of each append only the reply is lost, or all of it."""

    def __init__(self, ledger: Ledger, *, arrives: bool) -> None:
        self._sessions = ledger.sessions
        self._arrives = arrives
        self.fails = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sessions, name)

    async def append(self, *args: Any, **kwargs: Any) -> None:
        if self._arrives or not self.fails:
            await self._sessions.append(*args, **kwargs)
        if self.fails:
            raise LedgerUnavailableError("no reply")


def problem_of(store: LedgerSessionStore) -> str | None:
    """What is wrong with it by now."""
    return store.problem


@pytest.mark.parametrize("arrives", [False, True])
async def test_a_lost_reply_is_asked_again(ledger: Ledger, arrives: bool) -> None:
    """The same lines again stand once; until then it is a problem."""
    link = Unreliable(ledger, arrives=arrives)
    store = LedgerSessionStore(link, StagedSession(REPOSITORY, "1"))
    with pytest.raises(LedgerUnavailableError):
        await store.append(KEY, [{"type": "a"}, {"type": "b"}])
    assert problem_of(store) == UNANSWERED
    link.fails = False
    await store.append(KEY, [{"type": "a"}, {"type": "b"}])
    assert problem_of(store) is None
    await store.append(KEY, [{"type": "c"}])
    assert await store.load(KEY) == [{"type": "a"}, {"type": "b"}, {"type": "c"}]


async def test_no_line_is_left_out(ledger: Ledger) -> None:
    """Where the SDK gives lines up that had no reply, nothing may follow them."""
    link = Unreliable(ledger, arrives=False)
    store = LedgerSessionStore(link, StagedSession(REPOSITORY, "1"))
    with pytest.raises(LedgerUnavailableError):
        await store.append(KEY, [{"type": "a"}])
    link.fails = False
    for _ in range(2):
        with pytest.raises(StateNotSavedError):
            await store.append(KEY, [{"type": "b"}])
    assert store.problem == UNANSWERED
    assert await store.load(KEY) is None
