"""Words of the model that may be shown on GitHub: what they must not hold.

Invariant: whoever passes here has neither mention, link, HTML, reference nor control character, and
no word that looks like nothing but a secret. It is escaped all the same where it is shown.
"""

import re

from pydantic import ValidationError

from triage.secret_words import reads_like_a_secret

REPEATS_A_VALUE = "the text repeats what looks like a secret"

_MENTION = re.compile(r"(?<![\w`])@[A-Za-z0-9][\w/-]*")
_LINK = re.compile(
    r"(?i)\b(?:https?|ftp|mailto|javascript|data):\S|www\.|\]\s*\(|\]\s*\[|^\s*\[[^]]+\]:"
)
_HTML = re.compile(r"<[!/?A-Za-z]")
_REFERENCE = re.compile(r"(?<!\w)(?:[\w.-]+/[\w.-]+)?#\d+|\bGH-\d+")
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e0fff]"
)
"""Controls but tab and line feed, and marks that turn the direction of text or hide in it."""


def text_problem(text: str) -> str | None:
    """What is wrong with the model's own words, or None."""
    if _MENTION.search(text):
        return "the text mentions somebody"
    if _HTML.search(text):
        return "the text holds HTML"
    if _LINK.search(text):
        return "the text holds a link"
    if _REFERENCE.search(text):
        return "the text refers to another issue"
    if CONTROL.search(text):
        return "the text holds control characters"
    if reads_like_a_secret(text):
        return REPEATS_A_VALUE
    return None


def field_problem(error: ValidationError) -> str:
    """What is wrong with the form of an answer, without a word of its own: the name of a field that
    was not asked for is the model's."""
    first = error.errors()[0]
    if first["type"] == "extra_forbidden":
        return "it has a field that is not asked for"
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}"[:200]
