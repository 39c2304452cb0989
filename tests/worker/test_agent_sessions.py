"""Sessions that are kept, with the real SDK and CLI: resumed elsewhere, and how they end."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import InMemorySessionStore, SessionKey, SessionStore, SessionStoreEntry

from ledger.memory import StagedSession
from sandbox.model import Misbehaviour, ModelServer
from worker.agent import ClaudeAgent, Host
from worker.agent.transcript import PROJECT, spent
from worker.ports import AgentFailed, SessionAnswer, SessionRequest

SCHEMA = {
    "type": "object",
    "properties": {"decisions": {"type": "array"}},
    "required": ["decisions"],
}
UNKNOWN = "11111111-2222-4333-8444-555555555555"
CANARY = "canary-19fe"


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def model(running: ModelServer) -> ModelServer:
    running.reset()
    return running


def request(root: Path | None = None, resumed: str | None = None) -> SessionRequest:
    if root is not None:
        root.mkdir(exist_ok=True)
    staged = StagedSession(1, "1", resumed, 1 if resumed else 0)
    tools = ("Read", "Glob", "Grep") if root else ()
    prompt = f"===== FILES {CANARY} BEGIN =====\n===== FILES {CANARY} END ====="
    return SessionRequest("The first words.", prompt, SCHEMA, 6, 1.0, tools, root, staged)


def ask(
    model: ModelServer, folder: Path, store: SessionStore, asked: SessionRequest
) -> SessionAnswer:
    """One session of one worker, with folders of its own."""
    folder.mkdir(exist_ok=True)
    agent = ClaudeAgent(
        model=None,
        api_key="sk-test",
        base_url=model.url,
        wall_seconds=30,
        idle_seconds=10,
        api_retries=0,
        folder=folder,
        host=Host(stores=lambda _: store),
    )
    try:
        return asyncio.run(agent.ask(asked))
    finally:
        assert list(folder.iterdir()) == []


@dataclass(frozen=True, slots=True)
class Cold:
    """A first session, as it was kept."""

    session_id: str
    entries: list[Any]
    spent_usd: float


@pytest.fixture(scope="module")
def cold(running: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Cold:
    """One for all tests that only go on from it."""
    running.reset()
    folder = tmp_path_factory.mktemp("cold")
    store = InMemorySessionStore()
    answer = ask(running, folder / "one", store, request(folder / "a"))
    key: SessionKey = {"project_key": PROJECT, "session_id": answer.session_id}
    return Cold(answer.session_id, list(store.get_entries(key)), answer.cost.estimated_usd)


def fails(
    model: ModelServer, folder: Path, store: SessionStore, asked: SessionRequest
) -> AgentFailed:
    """The failure that it must be."""
    with pytest.raises(AgentFailed) as caught:
        ask(model, folder, store, asked)
    return caught.value


def test_session_is_resumed_by_another_worker(model: ModelServer, tmp_path: Path) -> None:
    """Another config folder and another checkout: the same session, with the words and the limits
    of the new request, and its own cost alone."""
    store = InMemorySessionStore()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "seen.txt").write_text(CANARY)
    model.use(("Read", {"file_path": "seen.txt"}), sessions=1)
    cold = ask(model, tmp_path / "one", store, request(tmp_path / "a"))
    before = len(model.requests)
    asked = replace(request(tmp_path / "b", cold.session_id), system="Other words.", max_turns=1)
    resumed = ask(model, tmp_path / "two", store, asked)
    assert resumed.session_id == cold.session_id
    assert (cold.saved, resumed.saved) == (True, True)
    body = model.requests[before].body
    assert "Other words." in str(body["system"])
    assert "The first words." not in str(body["system"])
    assert "seen.txt" in str(body["messages"])
    assert CANARY in str(body["messages"][:4])
    entries = store.get_entries({"project_key": PROJECT, "session_id": cold.session_id})
    both = cold.cost.estimated_usd + resumed.cost.estimated_usd
    assert spent(entries) == pytest.approx(both, abs=1e-5)
    assert 0 < resumed.cost.estimated_usd < both
    assert (resumed.cost.turns, resumed.cost.sessions) == (1, 1)


def test_session_without_a_checkout_is_resumed_too(model: ModelServer, tmp_path: Path) -> None:
    """Its working folder is another one each time."""
    store = InMemorySessionStore()
    cold = ask(model, tmp_path / "one", store, request())
    resumed = ask(model, tmp_path / "one", store, request(None, cold.session_id))
    assert (resumed.session_id, resumed.saved) == (cold.session_id, True)


def test_session_that_is_not_to_be_kept_leaves_nothing(model: ModelServer, tmp_path: Path) -> None:
    """No store is asked, and the answer says so."""
    store = InMemorySessionStore()
    answer = ask(model, tmp_path / "one", store, replace(request(), session=None))
    assert not answer.saved
    assert store.size == 0


class Kept(InMemorySessionStore):
    """A store that gives what it is told to."""

    def __init__(self, entries: list[Any] | None) -> None:
        super().__init__()
        self.entries = entries

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """The same for every key."""
        return self.entries


@pytest.mark.parametrize(
    "entries",
    [None, [], [{"type": "user"}], [{"type": "cost-state", "totalCostUSD": 1.5}, {"a": 1}]],
    ids=["gone", "empty", "no-message", "no-conversation"],
)
def test_session_that_is_lost_is_told_as_lost(
    model: ModelServer, tmp_path: Path, entries: list[Any] | None
) -> None:
    """The model is not asked, and the same state must not be tried again."""
    failure = fails(model, tmp_path / "one", Kept(entries), request(None, UNKNOWN))
    assert (failure.reason, failure.retryable) == ("session-lost", False)
    assert not failure.keeps_session
    assert failure.cost.estimated_usd == 0
    assert model.counts["requests"] == 0


@pytest.mark.parametrize(
    ("kind", "reason", "retryable"),
    [
        (Misbehaviour.ENDLESS_TOOLS, "max-turns", False),
        (Misbehaviour.EXPENSIVE, "budget", False),
        (Misbehaviour.NO_ANSWER, "no-structured-output", True),
        (Misbehaviour.UNAUTHORIZED, "auth", False),
        (Misbehaviour.FORBIDDEN, "forbidden", False),
        (Misbehaviour.NOT_FOUND, "no-model", False),
        (Misbehaviour.RATE_LIMITED, "rate-limited", True),
        (Misbehaviour.OVERLOADED, "overloaded", True),
        (Misbehaviour.CUT_STREAM, "api", True),
    ],
)
def test_every_other_failure_keeps_the_session(
    model: ModelServer,
    tmp_path: Path,
    cold: Cold,
    kind: Misbehaviour,
    reason: str,
    retryable: bool,
) -> None:
    """On a resume as without: the settings or the world need a change, not the state. Its cost is
    that of this attempt."""
    model.misbehave(kind)
    asked = request(tmp_path / "a", cold.session_id)
    failure = fails(model, tmp_path / "two", Kept(cold.entries), asked)
    assert (failure.reason, failure.retryable) == (reason, retryable)
    assert failure.keeps_session
    calls = reason in ("max-turns", "budget")
    assert {denial.tool for denial in failure.denials} == ({"Read"} if calls else set())
    if model.counts["requests"] == 1 and reason != "budget":
        assert failure.cost.estimated_usd < cold.spent_usd * 2


@pytest.mark.parametrize("kind", [Misbehaviour.ENDLESS_TOOLS, Misbehaviour.EXPENSIVE])
def test_session_goes_on_after_its_limits(
    model: ModelServer, tmp_path: Path, cold: Cold, kind: Misbehaviour
) -> None:
    """The next attempt starts from the same state, with turns and dollars anew."""
    model.misbehave(kind, sessions=1)
    asked = request(tmp_path / "a", cold.session_id)
    fails(model, tmp_path / "two", Kept(cold.entries), asked)
    model.reset()
    again = ask(model, tmp_path / "two", Kept(cold.entries), asked)
    assert again.session_id == cold.session_id
    assert again.cost.estimated_usd < cold.spent_usd * 2


def test_answer_off_the_schema_keeps_the_session(model: ModelServer, tmp_path: Path) -> None:
    """Five tries, then the word for it."""
    store = InMemorySessionStore()
    impossible = {**SCHEMA, "properties": {"decisions": {"type": "array", "minItems": 1}}}
    failure = fails(model, tmp_path / "one", store, replace(request(), schema=impossible))
    assert (failure.reason, failure.retryable, failure.keeps_session) == ("schema", True, True)
    assert failure.cost.turns == 5


class Refusing(InMemorySessionStore):
    """A store that takes nothing."""

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """As a ledger that is away."""
        raise OSError("away")


def test_answer_whose_session_could_not_be_kept_says_so(model: ModelServer, tmp_path: Path) -> None:
    """It is an answer, but nothing to resume from."""
    answer = ask(model, tmp_path / "one", Refusing(), request())
    assert answer.output == {"decisions": []}
    assert not answer.saved


@pytest.mark.parametrize("session_id", ["", "../../etc", "11111111", UNKNOWN.upper() + "x"])
def test_id_that_is_no_id_is_refused(model: ModelServer, tmp_path: Path, session_id: str) -> None:
    """It would be the name of a file."""
    staged = replace(request(None, UNKNOWN), session=StagedSession(1, "1", session_id, 1))
    failure = fails(model, tmp_path / "one", InMemorySessionStore(), staged)
    assert (failure.reason, failure.detail) == ("boundary", "a session's id is no UUID")


def test_session_needs_a_place(model: ModelServer) -> None:
    """An agent that was given no store cannot keep one."""
    agent = ClaudeAgent(model=None, api_key="k", base_url=model.url)
    with pytest.raises(AgentFailed, match="there is no place for sessions"):
        asyncio.run(agent.ask(request()))


def test_cost_of_a_transcript_is_its_last_sum() -> None:
    """The CLI writes it at the end of each session; an older one may have none."""
    assert spent([]) == 0
    assert spent([{"type": "user"}]) == 0
    sums = [{"type": "cost-state", "totalCostUSD": usd} for usd in (0.5, 2)]
    assert spent([*sums, {"type": "mode"}]) == 2
