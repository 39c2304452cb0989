"""What stands in for the model and the data folder."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from ledger.memory import StagedSession, TranscriptLine
from ledger.records import Report
from triage.findings import Start
from triage.plan import Cost
from triage.policy import AnyJobPolicy
from worker.ports import (
    AgentAnswer,
    AgentFailed,
    AgentRequest,
    Denial,
    Fetched,
    IssueText,
    NotFetched,
    ReviewRequest,
    SessionAnswer,
    Sessions,
    WatchRequest,
)

_COST = Cost(estimated_usd=0.01, turns=1, input_tokens=10, output_tokens=5, sessions=1)
_SESSION = "00000000-0000-4000-8000-000000000001"


@dataclass
class RuleAgent:
    """Decides by the first word of the title; counts what it was asked.

    ``fails``: what its next sessions raise. ``confidence``: how sure it says that it is; ``most``:
    issues of one session; ``verdict``: what it says of every issue; ``fickle``: no two sessions put
    it in the same words.
    """

    version: str = "rules-1"
    asked: list[AgentRequest] = field(default_factory=list)
    fails: list[AgentFailed | None] = field(default_factory=list)
    confidence: float = 0.9
    most: int = 1000
    verdict: str = ""
    fickle: bool = False
    forgets: bool = False
    denied: tuple[Denial, ...] = ()
    trees: list[ReviewRequest | WatchRequest] = field(default_factory=list)
    sessions: Sessions | None = None

    def prompt_version(self, policy: AnyJobPolicy) -> str:
        """The same for all that it is asked."""
        return self.version

    @property
    def sessions_asked(self) -> int:
        """How often it was asked for anything."""
        return len(self.asked) + len(self.trees)

    def batches(self, issues: Sequence[IssueText]) -> list[tuple[IssueText, ...]]:
        """Sessions of at most as many as it takes."""
        return [tuple(issues[at : at + self.most]) for at in range(0, len(issues), self.most)]

    async def decide(self, request: AgentRequest) -> AgentAnswer:
        """A label by the title, with the title as its evidence."""
        self.asked.append(request)
        failure = self.fails.pop(0) if self.fails else None
        if failure is not None:
            raise failure
        return AgentAnswer(
            decisions=tuple(
                {**self._decision(issue), **_places(issue, request.root)}
                for issue in request.issues
            ),
            cost=_COST,
        )

    async def review(self, request: ReviewRequest) -> SessionAnswer:
        """A finding for each line that says FAULT, under names that it tells again."""
        self._count(request)
        found = [
            {
                "id": f"fault-{path}-{number}",
                "file": path,
                "line": number,
                "severity": "medium",
                "summary": line.partition("FAULT")[2].strip(": ") or "Something is wrong",
            }
            for path in request.files
            for number, line in enumerate((request.root / path).read_text().splitlines(), 1)
            if "FAULT" in line
        ]
        verdict = "concerns" if found else "ok"
        output = {"review_id": f"review-{len(self.trees)}", "verdict": verdict, "findings": found}
        if request.start is not Start.COLD and request.prior is not None:
            there = {item["id"] for item in found}
            output |= {
                "previous_review_id": "" if self.forgets else request.prior.review_id,
                "previous_finding_ids": [] if self.forgets else list(request.prior.told),
                "resolved": [name for name in request.prior.told if name not in there],
            }
        session, saved = await self._kept(request.session, json.dumps(output))
        return SessionAnswer(output, _COST, self.denied, session, saved=saved)

    async def _kept(self, copy: StagedSession | None, said: str) -> tuple[str, bool]:
        """The session's id, and whether its answer stands in the copy. Raises AgentFailed where
        there is nothing to resume."""
        if copy is None or self.sessions is None:
            return _SESSION, False
        if await self.sessions.read(copy) is None:
            raise AgentFailed(
                "session-lost", "it is gone", retryable=False, cost=Cost(), keeps_session=False
            )
        session = copy.session_id or _SESSION
        await self.sessions.append(copy, [TranscriptLine("work", session, "", said)], after=0)
        return session, True

    async def watch(self, request: WatchRequest) -> AgentAnswer:
        """One sentence for each change."""
        self._count(request)
        said = [
            {"name": item.name, "summary": "Something is new there", "importance": "medium"}
            for item in request.changed
        ]
        return AgentAnswer(tuple(said), _COST)

    def _count(self, request: ReviewRequest | WatchRequest) -> None:
        self.trees.append(request)
        failure = self.fails.pop(0) if self.fails else None
        if failure is not None:
            raise failure

    def _decision(self, issue: IssueText) -> Mapping[str, object]:
        label = issue.title.split()[0].lower().strip(":")
        words = f"It reads like a {label}" + (f" ({len(self.asked)})." if self.fickle else ".")
        known = label in ("bug", "enhancement", "question")
        return {
            "number": issue.number,
            "labels": [label] if known else [],
            "confidence": self.confidence,
            "verdict": self.verdict or words,
            "evidence": [{"label": label, "quote": issue.title}] if known else [],
            "considered": [],
            "language": "en",
        }


def _places(issue: IssueText, root: Path | None) -> Mapping[str, object]:
    """The files that hold the last word of the title, and one that there is not."""
    if root is None:
        return {}
    word = issue.title.split()[-1]
    found = [
        path.relative_to(root).as_posix()
        for path in sorted(root.rglob("*"))
        if path.is_file() and word in path.read_text()
    ]
    return {"component": f"the {word}", "files": [*found, "no/such.file"]}


class Mute(RuleAgent):
    """Decides nothing, and costs more than the budget."""

    async def decide(self, request: AgentRequest) -> AgentAnswer:
        """An answer without decisions."""
        self.asked.append(request)
        return AgentAnswer(decisions=(), cost=Cost(estimated_usd=2.5, turns=1, sessions=1))


@dataclass
class MemoryArtifacts:
    """Reports by their path."""

    files: dict[str, str] = field(default_factory=dict)

    async def export(self, report: Report) -> str:
        """Keep it."""
        self.files[report.path] = report.text
        return report.path

    async def standing(self, path: str) -> str | None:
        """What was kept."""
        return self.files.get(path)


@dataclass
class MemoryWeb:
    """Documents by their URL, each as it was put there; counts what it was asked."""

    pages: dict[str, Fetched | NotFetched] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def put(self, url: str, text: str, at: datetime, media_type: str = "text/html") -> None:
        """From now on this is there."""
        content = text.encode()
        self.pages[url] = Fetched(
            url=url,
            address=url,
            observed_at=at,
            status=200,
            media_type=media_type,
            text=text,
            digest=hashlib.sha256(content).hexdigest(),
            bytes=len(content),
        )

    async def fetch(self, url: str) -> Fetched | NotFetched:
        """What was put there. Raises KeyError where nothing was."""
        self.asked.append(url)
        return self.pages[url]
