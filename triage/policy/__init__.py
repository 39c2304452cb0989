"""The policy: what a repository's maintainers allow, with the line of each error."""

from triage.policy.document import (
    AnyJobPolicy,
    Path,
    Policy,
    PolicyDocument,
    PolicyError,
    Problem,
    merged,
    read_policy,
    schema,
)
from triage.policy.jobs import JobPolicy, Reset, ResetEvery, ReviewPolicy
from triage.policy.resources import Resource, ResourceKind, WatchPolicy
from triage.policy.settings import (
    ROLES,
    Backlog,
    Budget,
    Commands,
    Memory,
    Permission,
    ScheduleSetting,
    Summary,
    Turns,
)

__all__ = [
    "ROLES",
    "AnyJobPolicy",
    "Backlog",
    "Budget",
    "Commands",
    "JobPolicy",
    "Memory",
    "Path",
    "Permission",
    "Policy",
    "PolicyDocument",
    "PolicyError",
    "Problem",
    "Reset",
    "ResetEvery",
    "Resource",
    "ResourceKind",
    "ReviewPolicy",
    "ScheduleSetting",
    "Summary",
    "Turns",
    "WatchPolicy",
    "merged",
    "read_policy",
    "schema",
]
