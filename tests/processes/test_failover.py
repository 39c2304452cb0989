"""A promoted replica, and a clean restart: the epoch notices the one, and lets the other pass.

All are played at once, when the first is asked for: each waits for most of its time.
"""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.processes.faults import NAMED, Kind, Meanwhile, Planned
from tests.processes.round import Round
from tests.processes.rounds import TEST_TIMEOUT_SECONDS, run_planned

pytestmark = pytest.mark.timeout(TEST_TIMEOUT_SECONDS)

PROMOTED = Planned(
    seed=0,
    number=0,
    kind=Kind.PROMOTED,
    boundary=NAMED["labels"],
    after=True,
    occurrence=1,
    issues=2,
    lost=True,
    meanwhile=Meanwhile.NOBODY,
)
"""The server goes when GitHub has a comment and a label of the first of two issues."""

AT_THE_END = replace(PROMOTED, boundary=NAMED["end"], after=False)
"""The server goes when all is read back, and the end of the attempt is asked for."""

PLAYED = {
    "nothing of the run": replace(PROMOTED, cut_at=NAMED["lease"]),
    "no plan": replace(PROMOTED, cut_at=NAMED["plan"]),
    "all but the last record": replace(PROMOTED, cut_at=NAMED["comment record"]),
    "no evidence of the issues": replace(AT_THE_END, cut_at=NAMED["read-back"]),
    "no evidence of the summary": replace(AT_THE_END, cut_at=NAMED["summary record"]),
    "a restart": replace(PROMOTED, kind=Kind.SERVER),
    "a restart at the end": replace(AT_THE_END, kind=Kind.SERVER),
}


@pytest.fixture(scope="module")
def played() -> Mapping[str, Round]:
    """What came of each."""
    done = run_planned(list(PLAYED.values()))
    return dict(zip(PLAYED, done.rounds, strict=True))


@pytest.mark.parametrize("known", [name for name in PLAYED if "restart" not in name])
def test_a_replica_that_lacks_the_last_writes(played: Mapping[str, Round], known: str) -> None:
    """A new epoch and a quiet, in which everything is read back; then one comment and one label on
    each issue, at most one summary, and a claim before each write: whatever the replica knew."""
    done = played[known]
    assert done.violations == (), done.said
    assert done.new_epoch
    assert done.quiet
    assert done.incidents == 0


@pytest.mark.parametrize("known", ["no evidence of the issues", "no evidence of the summary"])
def test_nothing_is_completed_on_evidence_that_is_not_there(
    played: Mapping[str, Round], known: str
) -> None:
    """The replica knows the lease: the end of the attempt is refused there all the same, and a
    later attempt reads back what the record lacks."""
    assert played[known].attempts >= 2
    assert played[known].reviews == 0


@pytest.mark.parametrize("name", [name for name in PLAYED if "restart" in name])
def test_a_restart_with_aof_is_no_loss(played: Mapping[str, Round], name: str) -> None:
    """SIGKILL, and the same files: the same epoch and no quiet; nothing twice, and the model is not
    asked again."""
    done = played[name]
    assert done.violations == (), done.said
    assert not done.new_epoch
    assert not done.quiet
    assert done.incidents == 0
