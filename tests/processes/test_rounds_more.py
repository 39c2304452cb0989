"""Twenty rounds more, in a file of their own: files are run beside each other."""

import pytest

from tests.processes.rounds import TEST_TIMEOUT_SECONDS, run_rounds
from tests.processes.test_rounds import COUNT, SEED

pytestmark = pytest.mark.timeout(TEST_TIMEOUT_SECONDS)


def test_every_invariant_holds_again() -> None:
    """The rounds that follow those of ``test_rounds``, at other boundaries."""
    done = run_rounds(COUNT, SEED, first=COUNT, jobs=6)
    assert [str(item) for item in done.violations] == []
    assert done.count == COUNT
    assert done.orphans == 0
