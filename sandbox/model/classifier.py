"""One decision about one issue, by counting words. No model, no randomness: same text, same answer.

The text of a decision is fit for publishing: no mention, no reference, no link, no HTML.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sandbox.model.task import Issue, Task
from sandbox.model.words import (
    LABEL_WORDS,
    MEANING_WORDS,
    PATTERNS,
    PHRASES,
    SCRIPTS,
    Kind,
    Pattern,
)

BODY_READ = 3_000
"""Characters of a body that are looked at."""

MOST_HITS = 3
"""Hits of one pattern in a body that count."""

_LINKS = re.compile(r"<[^>]*>?|!?\[([^\]]*)\]\([^)]*\)|\b[a-z]+://\S+|\bwww\.\S*", re.IGNORECASE)
_MARKS = re.compile(
    r"[@#`*_\[\]<>|~\\]+|\b(?:https?|ftp|mailto|javascript|data)(?=:)|\bGH-(?=\d)", re.IGNORECASE
)

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Scored:
    """A label with what speaks for it."""

    label: str
    kind: Kind | None
    score: float
    quotes: tuple[str, ...]


def decide(issue: Issue, task: Task) -> Json:
    """The decision about an issue, in the form that the schema asks for."""
    scored = sorted(
        (_score(label, means, issue) for label, means in task.labels.items()),
        key=lambda item: -item.score,
    )
    chosen = _chosen(scored, _groups(task))
    language = task.language or language_of(f"{issue.title}\n{issue.body}")
    return {
        "number": issue.number,
        "labels": [item.label for item in chosen],
        "confidence": _confidence(chosen, scored),
        "verdict": _verdict(chosen, issue, language),
        "evidence": [
            {"label": item.label, "quote": quote} for item in chosen for quote in item.quotes
        ][:3],
        "considered": [
            {"label": item.label, "reason": f"only “{plain(item.quotes[0])}” speaks for it"}
            for item in scored
            if item.quotes and item not in chosen
        ][:2],
        "language": language,
    }


def kind_of(label: str, means: str) -> Kind | None:
    """The kind that a label stands for, by its name or else by its description."""
    for text, table in ((label, LABEL_WORDS), (means, MEANING_WORDS)):
        words = set(_words(text))
        for kind, known in table.items():
            if words & known:
                return kind
    return None


def language_of(text: str) -> str:
    """The language that the script suggests: a tenth of all letters is enough."""
    letters = sum(char.isalpha() for char in text) or 1
    for language, script in SCRIPTS:
        if len(script.findall(text)) / letters > 0.1:
            return language
    return "en"


def plain(text: str) -> str:
    """Text without what must not be published: mentions, references, links, HTML, Markdown."""
    return " ".join(_MARKS.sub(" ", _LINKS.sub(r" \1 ", text)).split())


def _score(label: str, means: str, issue: Issue) -> Scored:
    kind = kind_of(label, means)
    score, quotes = 0.0, list[str]()
    for pattern, weight in PATTERNS[kind] if kind else _own_words(label):
        in_title = pattern.search(issue.title)
        in_body = list(pattern.finditer(issue.body[:BODY_READ]))[:MOST_HITS]
        score += weight * (3 * bool(in_title) + len(in_body))
        quotes += [_line_around(issue.title, in_title)] if in_title else []
        quotes += [_line_around(issue.body, match) for match in in_body[:1]]
    return Scored(label, kind, score, tuple(dict.fromkeys(filter(None, quotes)))[:2])


def _own_words(label: str) -> Sequence[Pattern]:
    """A label of no known kind is recognised by its last word: ``area/parser`` by "parser"."""
    words = [word for word in _words(label) if len(word) > 2][-1:]
    return [(re.compile(rf"\b{re.escape(word)}\w*", re.IGNORECASE), 1.5) for word in words]


def _groups(task: Task) -> list[frozenset[str]]:
    """Labels of which one at most is chosen: the prompt's groups, and those of a known kind."""
    known = frozenset(name for name, means in task.labels.items() if kind_of(name, means))
    return [*(frozenset(group) for group in task.exclusive), known]


def _chosen(scored: Sequence[Scored], groups: Iterable[frozenset[str]]) -> list[Scored]:
    """The best label of each group, and others that are clearly meant."""
    groups = list(groups)
    chosen: list[Scored] = []
    for item in scored:
        rivals = {name for group in groups if item.label in group for name in group}
        if item.score < 1.5 or any(other.label in rivals for other in chosen):
            continue
        chosen.append(item)
    return chosen[:4]


def _confidence(chosen: Sequence[Scored], scored: Sequence[Scored]) -> float:
    """From the distance between the best and the next label that was not chosen."""
    if not chosen:
        return 0.3
    others = [item.score for item in scored if item not in chosen]
    best, second = chosen[0].score, max(others, default=0.0)
    return round(min(0.97, 0.72 + 0.25 * (best - second) / (best + 2)), 2)


def _verdict(chosen: Sequence[Scored], issue: Issue, language: str) -> str:
    phrases: Mapping[Kind | None, str] = PHRASES.get(language[:2].lower(), PHRASES["en"])
    kind = next((item.kind for item in chosen if item.kind), None)
    colon, stop = ("：", "。") if language[:2] in ("zh", "ja") else (": ", ".")
    summary = (plain(issue.title) or plain(issue.body))[:150].rstrip(" .。:：")
    return f"{phrases[kind]}{colon}{summary}{stop}" if summary else phrases[kind] + stop


def _line_around(text: str, match: re.Match[str]) -> str:
    """The words around a hit, up to 120 characters of its line, as they stand in the text."""
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    end = len(text) if end < 0 else end
    start = max(start, match.start() - 60)
    return text[start : min(end, start + 120)].strip()


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\W_]+", text.lower()) if word]
