"""``docs/security.md`` names files and tests that are there."""

import re

from tests.injection.table import PAGE

ROOT = PAGE.parents[1]


def test_places_and_tests_exist() -> None:
    """Every path in code marks is a file or folder, every test after it is in it."""
    named = re.findall(r"`([\w/.-]+/[\w.-]+)(?:::(\w+))?`", PAGE.read_text())
    assert len(named) > 25
    for path, test in named:
        assert (ROOT / path).exists(), path
        assert not test or f"def {test}(" in (ROOT / path).read_text(), test
