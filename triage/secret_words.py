"""Words that look like a secret: a model that was told to repeat one must not publish it.

Two kinds. Some look like nothing else: keys of known makes, and long words that read like noise.
Others may be a secret or not, and count as one where a file of the repository has them in quotes or
as a value (``key = …``). What a model takes apart or spells otherwise is not seen here.

Measured on NLBSE'24: of 1,500 titles none looks like a secret, of 1,759 sentences one, an address
of a wallet.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from math import log2
from typing import Final

NOISE_LENGTH: Final = 24
NOISE_BITS: Final = 4.0
"""From this length on, and with so much entropy a character, a word reads like noise."""

VALUE_LENGTH: Final = 12
"""From this length on a value with letters and digits may be a secret."""

_MADE = re.compile(
    r"(?:gh[pousr]_|github_pat_|glpat-|sk-|xox[abpr]-|AKIA|AIza|eyJ)[\w-]{12,}|-----BEGIN"
)
_WORD = re.compile(rf"[\w+/=.~-]{{{VALUE_LENGTH},}}")
_EDGES: Final = "./-=~+"


def reads_like_a_secret(text: str) -> bool:
    """Whether some word of a text looks like nothing but a secret."""
    return bool(_MADE.search(text)) or any(_is_noise(word) for word in _words(text))


def possible_secrets(texts: Iterable[str]) -> frozenset[str]:
    """The words of these texts that are one if a file has them as a value."""
    return frozenset(word for text in texts for word in _words(text) if _is_mixed(word))


def values_in(text: str, words: Collection[str]) -> frozenset[str]:
    """Those of the words that a file's text has in quotes, or as a value."""
    return frozenset(word for word in words if word in text and _is_value(word, text))


def _words(text: str) -> Iterable[str]:
    return (found.strip(_EDGES) for found in _WORD.findall(text))


def _is_noise(word: str) -> bool:
    """A path or a name has parts that are words; noise has not."""
    longest = max(re.split(r"[/._-]", word), key=len)
    if len(longest) < NOISE_LENGTH or not _is_mixed(longest):
        return False
    counts = Counter(longest).values()
    return -sum(n / len(longest) * log2(n / len(longest)) for n in counts) >= NOISE_BITS


def _is_mixed(word: str) -> bool:
    has_digit = any(char.isdigit() for char in word)
    return len(word) >= VALUE_LENGTH and has_digit and any(char.isalpha() for char in word)


def _is_value(word: str, text: str) -> bool:
    shape = rf"[\"'`]{re.escape(word)}[\"'`]|[=:][ \t]*{re.escape(word)}(?![\w./-])"
    return re.search(shape, text) is not None
