"""What a review remembers from one night to the next, as values. No Redis here."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from triage.identifiers import Family

SessionId = Annotated[
    str, Field(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
]
"""A session's id as the agent's CLI gives it."""

RECALLS_WITH_A_REVIEW = 10
"""How many figures of recall come along with the last review."""


@dataclass(frozen=True, slots=True)
class StagedSession:
    """The copy of a session that one attempt works on.

    It begins with the first ``length`` entries of ``session_id``; with nothing where there is no
    session to resume. ``name`` is its own: the lease's fence and a random word.
    """

    repository_id: int
    name: str
    session_id: str | None = None
    length: int = 0

    def __post_init__(self) -> None:
        if (self.session_id is None) != (self.length == 0):
            raise ValueError("a resumed session has a length, and a new one has none")


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """One line of a transcript: of which project (the SDK's word for the working folder), session
    and part (``subpath``; empty: the conversation itself), and its JSON.

    No JSON at all: what came before it in that part was deleted; in all parts, where it stands in
    the conversation itself. ``at`` is when it was stored.
    """

    project: str
    session_id: str
    subpath: str
    json: str
    at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SessionSize:
    """Lines of a session, and the bytes of their JSON."""

    lines: int = 0
    bytes: int = 0


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Recall(_Frozen):
    """What a run that was to know the review before it recalled: ``recalled`` of the ``prior``
    findings, ``current`` now. ``same_session`` only where it was resumed."""

    run: str
    at: datetime
    same_session: bool
    prior_review_id_echoed: bool
    recalled: int
    prior: int
    current: int

    @property
    def share(self) -> float | None:
        """From 0 to 1; None where there was nothing to recall."""
        return self.recalled / self.prior if self.prior else None


class Cleared(_Frozen):
    """Which session was given up, by which run, and why."""

    session_id: str
    run: str
    reason: str


class ReviewState(_Frozen):
    """The last review of a repository, as the next one needs it; or its last watch, which has no
    session, and whose documents are its ``review``.

    ``fence`` is that of the run's snapshot. ``files`` and ``files_digest`` are of the checkout at
    ``commit``. ``review`` is the review's own JSON, in the form ``version`` of whoever wrote it:
    the ledger does not look into it. ``session_length`` is in lines, and ``session_since`` when the
    session ran cold.

    ``recalls`` (newest first) and ``cleared`` are the ledger's, and not written with a plan.
    """

    family: Family = Family.REVIEW
    repository_id: int
    review_id: str
    run: str
    window: str
    fence: int
    at: datetime
    commit: str
    files: int
    files_digest: str
    version: int
    review: str
    session_id: SessionId | None = None
    session_length: int = 0
    session_since: datetime | None = None
    recalls: tuple[Recall, ...] = ()
    cleared: Cleared | None = None


@dataclass(frozen=True, slots=True)
class Promotion:
    """What is kept of a review together with its plan: its state, its recall where it had one, and
    the copy that becomes ``state.session_id`` (None: no session is kept).

    ``state.session_length`` is what ``Sessions.length`` says of the copy once the session is over.
    """

    state: ReviewState
    copy: StagedSession | None = None
    recall: Recall | None = None

    def __post_init__(self) -> None:
        copy, state = self.copy, self.state
        if (copy is None) != (state.session_id is None):
            raise ValueError("a session is kept of a copy, and of nothing else")
        if copy is None:
            return
        if copy.repository_id != state.repository_id:
            raise ValueError("the copy is of another repository")
        if copy.session_id not in (None, state.session_id):
            raise ValueError("a resumed session keeps its id")
        if state.session_length <= copy.length:
            raise ValueError("a session that was continued is longer than before")

    def without_session(self) -> "Promotion":
        """The same, but that no session is kept: the next review starts cold."""
        none = {"session_id": None, "session_length": 0, "session_since": None}
        return Promotion(self.state.model_copy(update=none), None, self.recall)
