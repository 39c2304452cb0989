"""Which craft does which job."""

from collections.abc import Mapping
from typing import Final

from triage.identifiers import FAMILY, Family, JobKey
from worker.stages.craft import Craft
from worker.stages.reviewing import Reviewing
from worker.stages.triaging import Triaging
from worker.stages.watching import Watching

_CRAFTS: Final[Mapping[Family, Craft]] = {
    Family.TRIAGE: Triaging(),
    Family.REVIEW: Reviewing(),
    Family.WATCH: Watching(),
}


def craft_of(job: JobKey) -> Craft:
    """The craft of a job's family."""
    return _CRAFTS[FAMILY[job]]
