"""A report and how it differs from the one that it takes the place of."""

from difflib import unified_diff

_DIFFERENCE = "\n# Difference from the report before\n"


def with_difference(text: str, earlier: str | None) -> str:
    """The report, and behind it what changed since ``earlier``, if that is one and says other
    things."""
    if not earlier:
        return text
    before = earlier.partition(_DIFFERENCE)[0].splitlines()
    changed = list(unified_diff(before, text.splitlines(), "before", "now", lineterm="", n=1))
    if not changed:
        return text
    lines = [line.replace("```", "'''") for line in changed]
    return text + "\n".join([_DIFFERENCE, "```diff", *lines, "```", ""])
