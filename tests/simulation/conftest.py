"""Stories are told in virtual time."""

import pytest

from tests.simulation.virtual import VirtualLoop


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, object]]:
    """Async tests run on a loop that jumps instead of waiting."""
    return "asyncio", {"loop_factory": VirtualLoop}
