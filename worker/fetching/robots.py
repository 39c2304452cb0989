"""What a robots.txt lets us read, by RFC 9309: the longest match wins, ``allow`` where two tie.

``urllib.robotparser`` takes the first match and knows neither ``*`` nor ``$`` in a path.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

_LINE = re.compile(r"\r\n|\r|\n")
_PRODUCT = re.compile(r"[a-z_-]+|\*", re.ASCII)
_ESCAPED = re.compile(r"%([0-9a-fA-F]{2})", re.ASCII)
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]", re.ASCII)
_EVERYBODY = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """One line: ``pattern`` is a path in one spelling, with ``*``, and ``$`` at its end."""

    allow: bool
    pattern: str

    def matches(self, path: str) -> bool:
        """Does it cover this path? In one pass, whatever the pattern."""
        first, *pieces = self.pattern.removesuffix("$").split("*")
        anchored = self.pattern.endswith("$")
        if not path.startswith(first):
            return False
        if not pieces:
            return path == first or not anchored
        at = len(first)
        for piece in pieces[:-1]:
            found = path.find(piece, at)
            if found < 0:
                return False
            at = found + len(piece)
        last = pieces[-1]
        if anchored:
            return len(path) - len(last) >= at and path.endswith(last)
        return path.find(last, at) >= 0


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules that bind one product."""

    rules: tuple[Rule, ...] = ()

    @classmethod
    def parse(cls, text: str, product: str) -> Self:
        """The rules of all groups that name the product, else of those for everybody."""
        named: list[Rule] = []
        everybody: list[Rule] = []
        found = False
        for agents, rules in _groups(text):
            if product.lower() in agents:
                found = True
                named += rules
            elif _EVERYBODY in agents:
                everybody += rules
        return cls(tuple(named if found else everybody))

    def allows(self, path: str) -> bool:
        """May this be read? ``path`` begins with ``/``, has the query, and is percent-encoded."""
        if path.partition("?")[0] == "/robots.txt":
            return True
        spelled = _one_spelling(path).replace("*", "%2A").replace("$", "%24")
        met = [rule for rule in self.rules if rule.matches(spelled)]
        return max(((len(rule.pattern), rule.allow) for rule in met), default=(0, True))[1]


def _groups(text: str) -> Iterator[tuple[frozenset[str], Sequence[Rule]]]:
    """Who is named, and the rules for them. What is neither ends no group and begins none."""
    agents: set[str] = set()
    rules: list[Rule] = []
    closed = False
    for line in _LINE.split(text.removeprefix("\ufeff")):
        key, _, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        word = key.lower()
        if word == "user-agent":
            if closed:
                yield frozenset(agents), rules
                agents, rules, closed = set(), [], False
            product = _PRODUCT.match(value.lower())
            agents.add(product[0] if product else "")
        elif word in ("allow", "disallow"):
            closed = True
            if value:
                rules.append(Rule(word == "allow", _one_spelling(value)))
    yield frozenset(agents), rules


def _one_spelling(path: str) -> str:
    """Percent-encoded where it must be, and nowhere else (RFC 9309, 2.2.2)."""
    escaped = "".join(
        each if each.isascii() else "".join(f"%{byte:02X}" for byte in each.encode("utf-8"))
        for each in path
    )
    return _ESCAPED.sub(_shortest, escaped)


def _shortest(escape: re.Match[str]) -> str:
    letter = chr(int(escape[1], 16))
    return letter if _UNRESERVED.fullmatch(letter) else escape[0].upper()
