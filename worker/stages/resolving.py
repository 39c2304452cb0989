"""A person's decision about a run in needs-review, carried out under the lease.

``done`` and ``abandon`` read once more: what is seen is confirmed, what is not is skipped as
resolved. ``retry`` starts intent, sends and continuations anew; the marker stays the same, so that
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
        if resolution.verdict is Verdict.RETRY:
            await attempt.keep([_anew(effect)])
        else:
            await attempt.keep([await _closed(attempt, effect)])


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


async def _closed(attempt: Attempt, effect: RunEffect) -> RunEffect:
    """The effect as one more read leaves it; what was never sent need not be looked for."""
    seen = await settle_one(attempt, effect) if effect.sends else effect
    return seen if seen.evidence in OVER else skipped(seen, Skip.RESOLVED)
