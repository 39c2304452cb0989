"""What the pipeline needs from the outside, as Protocols. Adapters implement them; wiring binds.

Invariant: no adapter is imported here, in ``pipeline``, ``recovery`` or the stages.
"""

from ledger.errors import LeaseLost, LedgerUnavailableError
from worker.ports.agent import (
    Agent,
    AgentAnswer,
    AgentFailed,
    AgentRequest,
    IssueText,
)
from worker.ports.github import (
    Comment,
    GitHubReader,
    GitHubWriter,
    Gone,
    IssueEvent,
    Landed,
    Late,
    Outcome,
    Place,
    ReadFailed,
    Refusal,
    Refused,
    RepositoryNow,
    Unknown,
)
from worker.ports.ledger import (
    Budgets,
    DueSet,
    Effects,
    Epochs,
    Leases,
    LedgerPorts,
    Repositories,
    Runs,
)
from worker.ports.run import (
    Artifacts,
    Clock,
    Log,
    Ports,
    Timing,
)

__all__ = [
    "Agent",
    "AgentAnswer",
    "AgentFailed",
    "AgentRequest",
    "Artifacts",
    "Budgets",
    "Clock",
    "Comment",
    "DueSet",
    "Effects",
    "Epochs",
    "GitHubReader",
    "GitHubWriter",
    "Gone",
    "IssueEvent",
    "IssueText",
    "Landed",
    "Late",
    "LeaseLost",
    "Leases",
    "LedgerPorts",
    "LedgerUnavailableError",
    "Log",
    "Outcome",
    "Place",
    "Ports",
    "ReadFailed",
    "Refusal",
    "Refused",
    "Repositories",
    "RepositoryNow",
    "Runs",
    "Timing",
    "Unknown",
]
