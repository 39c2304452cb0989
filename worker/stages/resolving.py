"""A person's decision about a run in needs-review, carried out under the lease.

GitHub is read once more: what is seen is confirmed. What is not, ``done`` and ``abandon`` skip as
resolved; ``retry`` starts intent, sends and continuations anew; the marker stays the same, so that
an earlier request that lands after all is found as this effect.
"""

from triage.contract import Evidence, Resolution, RunEffect, Skip, Verdict
from triage.effects import skipped
from worker.stages.attempt import Attempt
from worker.stages.reading import settle_one

OVER = (Evidence.CONFIRMED, Evidence.SKIPPED)


async def carry_out(attempt: Attempt, resolution: Resolution) -> None:
    """Do what the person decided with everything that is neither confirmed nor skipped."""
    await attempt.save(resolutions=(*attempt.run.resolutions, resolution), continuations=0)
    for effect in [item for item in attempt.effects.values() if item.evidence not in OVER]:
        # What was never sent need not be looked for.
        seen = await settle_one(attempt, effect) if effect.sends else effect
        if seen.evidence not in OVER:
            retried = resolution.verdict is Verdict.RETRY
            seen = _anew(seen) if retried else skipped(seen, Skip.RESOLVED)
        await attempt.keep([seen])


def _anew(effect: RunEffect) -> RunEffect:
    """The effect as if nothing had been sent yet."""
    return effect.model_copy(
        update={
            "evidence": Evidence.ABSENT,
            "reason": Skip.RESOLVED,
            "sends": 0,
            "sent_at": None,
            "open": False,
        }
    )
