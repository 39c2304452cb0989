"""Words that look like a secret, and those that only might."""

import pytest

from triage.secret_words import possible_secrets, reads_like_a_secret, values_in


@pytest.mark.parametrize(
    "text",
    [
        "The token is ghp_0123456789abcdefABCD.",
        "It holds sk-live-0123456789abcd",
        "-----BEGIN RSA PRIVATE KEY-----",
        "It says q7Zr2LmX9vTb4KpW8sNc1YdE",
    ],
)
def test_looks_like_nothing_else(text: str) -> None:
    """Keys of known makes, and noise."""
    assert reads_like_a_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "A value in src/worker/attempts/test_utf8_roundtrip_2.py is divided by zero",
        "The function compute_sha256_of_everything_that_was_read returns None",
        "Version 1.22.333 of python3.11-slim-bookworm is used",
        "See 2026-09-16T09:00:00 and 6dcb09b5b57875f334f61aeb",
        "在空文件上崩溃",
    ],
)
def test_ordinary_words(text: str) -> None:
    """Paths, names, versions and commits."""
    assert not reads_like_a_secret(text)


@pytest.mark.parametrize(
    "line",
    [
        'API_KEY = "canary-settings-61bd"',
        "API_KEY=canary-settings-61bd",
        "key: canary-settings-61bd",
        "`canary-settings-61bd`",
    ],
)
def test_value_of_a_file(line: str) -> None:
    """What a file has in quotes, or behind a sign of equality or a colon."""
    words = possible_secrets(["It holds canary-settings-61bd."])
    assert values_in(f"first\n{line}\nlast\n", words) == {"canary-settings-61bd"}


def test_name_of_a_file_is_no_value() -> None:
    """A name that the code uses is said freely."""
    words = possible_secrets(["Calls parse_utf8_header twice"])
    assert values_in("def parse_utf8_header(text):\n    return text\n", words) == frozenset()
    assert possible_secrets(["Divides by zero in the parser", "short1"]) == frozenset()
