"""What stands in for the model and the data folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ledger.records import Report
from triage.plan import Cost
from worker.ports import AgentAnswer, AgentFailed, AgentRequest, IssueText


@dataclass
class RuleAgent:
    """Decides by the first word of the title; counts what it was asked.

    ``fails``: what its next sessions raise. ``confidence``: how sure it says that it is; ``most``:
    issues of one session; ``verdict``: what it says of every issue; ``fickle``: no two sessions put
    it in the same words.
    """

    prompt_version: str = "rules-1"
    asked: list[AgentRequest] = field(default_factory=list)
    fails: list[AgentFailed | None] = field(default_factory=list)
    confidence: float = 0.9
    most: int = 1000
    verdict: str = ""
    fickle: bool = False

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
            decisions=tuple(self._decision(issue) for issue in request.issues),
            cost=Cost(estimated_usd=0.01, turns=1, input_tokens=10, output_tokens=5, sessions=1),
        )

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
