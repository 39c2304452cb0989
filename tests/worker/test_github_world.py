"""A sandbox GitHub, over HTTP or in the same process; reader and writer of a run in it."""

import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from ledger.records import Claim, Lease
from sandbox.github import GitHub, new_private_key
from sandbox.github.server import GitHubServer
from tests.simulation.transport import SandboxTransport
from triage.contract import RunEffect
from triage.identifiers import EffectKind, Family, effect_key
from triage.marker import MarkerKey, MarkerKeys, body_digest, stamp
from triage.snapshot import Issue
from worker.github.auth import AppCredentials, Authority, TokenCredentials
from worker.github.connection import Connection, RequestKind
from worker.github.reader import RestReader
from worker.github.reads import Reads
from worker.github.writer import RestWriter
from worker.ports import Landed, Place, RepositoryNow, Timing

REPOSITORY_ID = 1296269
WINDOW = "2026-09-16"
RUN = f"daily-issue-triage:R{REPOSITORY_ID}:{WINDOW}:p3f2a91c0"
KEYS = MarkerKeys((MarkerKey("k1", b"0123456789abcdef"),))
ISSUE_ID = 99
TEXT = "Triage: a bug."
PRIVATE_KEY = new_private_key()


@pytest.fixture
def anyio_backend() -> str:
    """The program runs on asyncio alone."""
    return "asyncio"


@dataclass
class Carrier:
    """What carries the requests: HTTP over loopback, or the call that simulations use."""

    in_process: bool = False


CARRIER = Carrier()


@pytest.fixture(params=["over HTTP", "in process"])
def either_carrier(request: pytest.FixtureRequest) -> Iterator[None]:
    """The test holds for both: what a simulation shows is what HTTP does."""
    CARRIER.in_process = request.param == "in process"
    yield
    CARRIER.in_process = False


@dataclass
class HastyClock:
    """The real time, but no pause is waited for."""

    pauses: list[float] = field(default_factory=list)
    ahead: timedelta = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def token(self) -> str:
        return "0" * 32


@dataclass
class World:
    """One repository with an App on it, and the adapters that ask there."""

    github: GitHub
    installation: str
    reader: RestReader
    writer: RestWriter
    authority: Authority
    clock: HastyClock
    counted: Counter[RequestKind]

    @property
    def place(self) -> Place:
        return Place(REPOSITORY_ID, "acme/api", self.installation)

    def sent(self, method: str, path: str = "") -> int:
        """How many such requests reached GitHub; ``path`` is a pattern."""
        found = self.github.requests(method)
        return sum(1 for each in found if re.search(path, each.path))


@asynccontextmanager
async def world(
    *,
    as_account: str = "",
    timing: Timing | None = None,
    private: bool = False,
    may_write: bool = True,
) -> AsyncIterator[World]:
    """A GitHub with acme/api; asked as the App, or with the token of ``as_account``."""
    github = GitHub()
    github.add_organization("acme")
    github.add_repository("acme/api", id=REPOSITORY_ID, private=private)
    github.add_app("retriage", 42, private_key=PRIVATE_KEY)
    installation = str(github.install("retriage", "acme"))
    clock, counted = HastyClock(), Counter[RequestKind]()
    credentials = (
        TokenCredentials(github.add_token(as_account))
        if as_account
        else AppCredentials("42", PRIVATE_KEY)
    )
    with ExitStack() as stack:
        in_process = CARRIER.in_process
        server = None if in_process else stack.enter_context(GitHubServer(github))
        connection = Connection(
            clock=clock,
            timing=timing or Timing(),
            api_url=github.base_url if server is None else server.url,
            count=lambda kind: counted.update([kind]),
            transport=SandboxTransport(github) if in_process else None,
        )
        async with connection:
            authority = Authority(credentials, connection, clock)
            reads = Reads(connection, authority, clock)
            yield World(
                github,
                installation,
                RestReader(reads, authority),
                RestWriter(connection, authority, clock, may_write=may_write),
                authority,
                clock,
                counted,
            )


def key_of(kind: EffectKind, github_id: int | None = None) -> str:
    """The key of an effect in the repository."""
    subject = {EffectKind.SUMMARY: 0, EffectKind.REMOVAL: github_id or 0}.get(kind, ISSUE_ID)
    window = WINDOW if kind is EffectKind.SUMMARY else None
    return effect_key(REPOSITORY_ID, subject, Family.TRIAGE, kind, window)


def body(text: str = TEXT, kind: EffectKind = EffectKind.COMMENT) -> str:
    """A body under its marker."""
    return stamp(text, effect_key=key_of(kind), run=RUN, keys=KEYS)


def claim(
    kind: EffectKind = EffectKind.COMMENT,
    issue: int = 1,
    *,
    text: str = TEXT,
    labels: tuple[str, ...] = (),
    github_id: int | None = None,
    seconds: float = 5.0,
    run: str = RUN,
) -> Claim:
    """The right to send one effect, for some seconds more."""
    until = datetime.now(UTC) + timedelta(seconds=120)
    return Claim(
        lease=Lease(run, "worker-1", "t" * 32, 7, "epoch", until),
        effect=RunEffect(
            effect_key=key_of(kind, github_id),
            kind=kind,
            issue=issue,
            issue_id=ISSUE_ID,
            labels=labels,
            digest=body_digest(text),
            github_id=github_id,
        ),
        operation="op",
        deadline=time.monotonic() + seconds,
    )


async def test_a_comment_and_a_label_land_end_to_end() -> None:
    """One comment and one label, written and read back; once its id is known, a repository is
    addressed by it."""
    async with world() as here:
        number = here.github.add_issue("acme/api", "It crashes", "On start.", author="bob")
        now = await here.reader.repository("acme/api")
        assert isinstance(now, RepositoryNow)
        place = now.place
        commented = await here.writer.create_comment(claim(issue=number), place, number, body())
        labelled = await here.writer.add_labels(
            claim(EffectKind.LABELS, number, labels=("bug",)), place, number, ["bug"]
        )
        comments = await here.reader.issue_comments(place, number)
        issue = await here.reader.issue(place, number)

    assert place == here.place
    assert isinstance(comments, list)
    assert isinstance(commented, Landed)
    assert [item.id for item in comments] == [commented.github_id]
    assert comments[0].body == body()
    assert isinstance(issue, Issue)
    assert issue.labels == ("bug",)
    assert labelled == Landed(labels=("bug",))
    by_name = [each.path for each in here.github.requests() if "/repos/" in each.path]
    assert by_name == ["/repos/acme/api/installation", "/repos/acme/api"]
    assert here.counted == {"read": 4, "token": 1, "write": 2}
