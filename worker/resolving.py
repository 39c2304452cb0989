"""Needs-review, decided by a person: through the one door, under the lease."""

from collections.abc import Sequence
from datetime import datetime

from triage.contract import Resolution, Status, Verdict
from triage.identifiers import DedupeKey, MalformedKeyError
from worker.pipeline import execute
from worker.ports import Ports
from worker.stages.converge import STAGE
from worker.stages.settling import RunReport

LONGEST_REASON = 500


class UnresolvableError(ValueError):
    """There is nothing to decide there, or the decision is none."""


def resolution_of(words: Sequence[str], *, by: str, at: datetime) -> Resolution:
    """``KEY VERDICT why …`` as a decision. Raises UnresolvableError."""
    verdicts = ", ".join(Verdict)
    if len(words) < 2 or words[1] not in set(Verdict):
        raise UnresolvableError(f"after the key comes one of {verdicts}")
    why = " ".join(words[2:]).strip()
    if not why:
        raise UnresolvableError("a decision needs its reason: it is kept with the run")
    return Resolution(verdict=Verdict(words[1]), by=by, why=why[:LONGEST_REASON], at=at)


async def resolve(
    key: str, decided: Resolution, ports: Ports, *, repository_id: int | None = None
) -> RunReport:
    """Carry a decision out and classify the run anew. Raises UnresolvableError.

    ``repository_id``: the run must be of this repository.
    """
    try:
        named = DedupeKey.parse(key)
    except MalformedKeyError as error:
        raise UnresolvableError(str(error)) from error
    run = (await ports.ledger.leases.view(key)).run
    if run is None or (repository_id is not None and named.repository_id != repository_id):
        raise UnresolvableError(f"the ledger has no run {key}")
    if run.status is not Status.NEEDS_REVIEW:
        raise UnresolvableError(f"{key} is {run.status}: only needs-review can be resolved")
    if run.stage == STAGE:
        raise UnresolvableError(
            f"{key} removes a duplicate of the bot's own: delete it on GitHub, and it is over"
        )
    ports.log("RUN-RESOLVED", run=key, verdict=decided.verdict, by=decided.by, why=decided.why)
    return await execute(run.inputs, ports, by_hand=True, resolution=decided)
