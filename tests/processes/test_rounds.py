"""Rounds with real processes, each kind of fault at least once; more in ``test_rounds_more``.

    python -m tests.processes.rounds --seed S --round N

plays one of them again and prints what its processes said.
"""

import pytest

from tests.processes.faults import Kind
from tests.processes.rounds import TEST_TIMEOUT_SECONDS, Rounds, run_rounds

SEED = 3
COUNT = 20

pytestmark = pytest.mark.timeout(TEST_TIMEOUT_SECONDS)


@pytest.fixture(scope="module")
def done() -> Rounds:
    """Twenty rounds, some at once."""
    return run_rounds(COUNT, SEED, jobs=6)


def test_every_invariant_holds(done: Rounds) -> None:
    """I1 to I7, the epoch and the frozen plan: whatever the fault and wherever it strikes."""
    assert [str(item) for item in done.violations] == []


def test_no_process_is_left(done: Rounds) -> None:
    """Worker, work horse, the agent's CLI, server: counted after each round."""
    assert done.orphans == 0


def test_only_a_request_that_outlives_all_deadlines_is_an_incident(done: Rounds) -> None:
    """Each of those that was held back made one; nothing else did."""
    assert done.incidents == done.by_kind[Kind.LATE]


def test_every_kind_of_fault_struck(done: Rounds) -> None:
    """At least once."""
    assert set(done.by_kind) == set(Kind)
