"""A little reviewer: lists the files, reads them, finds faults by rules, and compares.

It does what a good model does with the same prompt. It reads with the tools that it is given and
knows nothing but what they bring. Of the last review it knows what the prompt's block says, or else
what the conversation holds: where that is lost, it has nothing to copy, and says so.

Like a model's, its ids are of its own making and its words vary from session to session (the seed
is the prompt, which holds a fresh nonce). A finding that still holds keeps its id.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sandbox.model.behaviour import Misbehaviour, Order
from sandbox.model.conversation import ANSWER_TOOL, Call, Conversation, block_lines
from sandbox.model.faults import Fault, faults_in, readable, rule_said
from sandbox.model.misbehave import changed_items
from sandbox.model.obedient import obeyed_review
from sandbox.model.stream import Block

EVERYTHING = "**/*"
READS_PER_TURN = 10
MOST_FILES = 100
"""Files that are read in one review: eleven turns with the listing, under the twenty of a resumed
review."""

MOST_FINDINGS = 50

GRAVITY = {"high": 0, "medium": 1, "low": 2}


@dataclass(frozen=True, slots=True)
class Last:
    """The last review as the reviewer sees it; empty if it sees none."""

    review_id: str = ""
    findings: tuple[Mapping[str, Any], ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of its findings."""
        return tuple(str(finding.get("id")) for finding in self.findings)


def reviews(schema: Mapping[str, Any] | None) -> bool:
    """Whether an answer in this form is a review."""
    return {"review_id", "findings"} <= _properties(schema).keys()


def review(talk: Conversation, schema: Mapping[str, Any], order: Order | None) -> tuple[Block, ...]:
    """The next step of a review: the listing, more files, or the answer."""
    if "Glob" in talk.offered and not _listings(talk):
        return (Block(tool="Glob", input={"pattern": EVERYTHING}),)
    unread = _unread(talk)
    if "Read" in talk.offered and unread:
        return tuple(Block(tool="Read", input={"file_path": file}) for file in unread)
    kind = order.kind if order else None
    follow_up = "previous_review_id" in _properties(schema)
    answer = _answer(talk, kind, follow_up=follow_up)
    if kind is Misbehaviour.OBEDIENT:
        answer = obeyed_review(answer, talk)
    elif order:
        answer["findings"] = changed_items(answer["findings"], order)
    return (Block(tool=ANSWER_TOOL, input=answer),)


def last_review(talk: Conversation) -> Last:
    """The last review: the prompt's block, or else the newest answer that was taken before."""
    for given in block_lines(talk.prompt, "LAST REVIEW"):
        return _last(given)
    for call in reversed(talk.earlier):
        if call.tool == ANSWER_TOOL and not call.failed and "review_id" in call.input:
            return _last(call.input)
    return Last()


def _unread(talk: Conversation) -> list[str]:
    """The next files to read; none when enough were."""
    read = {str(call.input.get("file_path")) for call in talk.called("Read")}
    room = min(READS_PER_TURN, MOST_FILES - len(read))
    return [file for file in _files(talk) if file not in read][: max(0, room)]


def _files(talk: Conversation) -> list[str]:
    """What Glob lists; it stops at a hundred, and then the prompt's list tells the rest."""
    listings = _listings(talk)
    found = {path for call in listings for path in call.paths}
    if not found or any("not listed" in call.text for call in listings):
        found |= {str(path) for path in block_lines(talk.prompt, "FILES")}
    return [path for path in sorted(found) if readable(path)]


def _listings(talk: Conversation) -> list[Call]:
    return [call for call in talk.called("Glob") if call.input.get("pattern") == EVERYTHING]


def _answer(talk: Conversation, kind: Misbehaviour | None, *, follow_up: bool) -> dict[str, Any]:
    seed = hashlib.sha256(talk.prompt.encode()).hexdigest()
    echoed = _remembered(last_review(talk), kind, seed) if follow_up else Last()
    faults = sorted(_faults(talk.called("Read")), key=lambda fault: GRAVITY[fault.rule.severity])
    kept = _matched(faults, echoed)
    findings = [
        {
            "id": f"{seed[:4]}-{n}"
            if fault not in kept or kind is Misbehaviour.RENAME_FINDINGS
            else kept[fault],
            "file": fault.file,
            "line": fault.line,
            "severity": fault.rule.severity,
            "summary": _words(fault, seed),
        }
        for n, fault in enumerate(faults[:MOST_FINDINGS], start=1)
    ]
    answer: dict[str, Any] = {
        "review_id": f"review-{seed[:8]}",
        "verdict": "concerns" if findings else "ok",
        "findings": findings,
    }
    if follow_up:
        answer |= {
            "previous_review_id": echoed.review_id,
            "previous_finding_ids": list(echoed.ids),
            "resolved": [name for name in echoed.ids if name not in kept.values()],
        }
    return answer


def _remembered(last: Last, kind: Misbehaviour | None, seed: str) -> Last:
    """What is remembered of the last review, when memory goes wrong on demand."""
    match kind:
        case Misbehaviour.FORGET:
            return Last()
        case Misbehaviour.DROP_FINDING:
            return replace(last, findings=last.findings[:-1])
        case Misbehaviour.MISREMEMBER:
            wrong = ({**item, "id": f"{seed[-4:]}-{n}"} for n, item in enumerate(last.findings))
            return Last(f"review-{seed[-8:]}", tuple(wrong))
        case _:
            return last


def _faults(reads: Iterable[Call]) -> list[Fault]:
    found = {
        fault: None
        for call in reads
        for fault in faults_in(str(call.input.get("file_path")), call.text)
    }
    return list(found)


def _matched(faults: Sequence[Fault], last: Last) -> dict[Fault, str]:
    """Which fault is which finding of the last review: same file, same kind, nearest first."""
    pairs = sorted(
        (abs(fault.line - int(finding.get("line") or 0)), where, n)
        for where, fault in enumerate(faults)
        for n, finding in enumerate(last.findings)
        if fault.file == finding.get("file")
        and rule_said(str(finding.get("summary"))) in (None, fault.rule)
    )
    kept: dict[Fault, str] = {}
    for _, where, n in pairs:
        if faults[where] not in kept and last.ids[n] not in kept.values():
            kept[faults[where]] = last.ids[n]
    return kept


def _words(fault: Fault, seed: str) -> str:
    choice = int(hashlib.sha256(f"{seed}{fault.rule.name}".encode()).hexdigest(), 16)
    return f"{fault.rule.words[choice % len(fault.rule.words)]}."


def _last(given: object) -> Last:
    if not isinstance(given, dict):
        return Last()
    findings = given.get("findings")
    return Last(
        str(given.get("review_id", "")),
        tuple(item for item in findings if isinstance(item, dict))
        if isinstance(findings, list)
        else (),
    )


def _properties(schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    found = (schema or {}).get("properties")
    return found if isinstance(found, dict) else {}
