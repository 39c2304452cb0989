"""The summary issue of a window and the report of an observe run: functions of the window's runs.

Invariant: the same runs give the same body, so a second run of a window has nothing to write.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from triage.classification import Facts, classify
from triage.comment import escaped, render
from triage.contract import Evidence, RunEffect, RunInputs, RunRecord, Skip, Status
from triage.difference import with_difference
from triage.identifiers import EffectKind
from triage.marker import cut
from triage.plan import Decision, Held, Plan
from triage.policy import Summary
from triage.readback import is_overdue
from triage.snapshot import Snapshot
from triage.window import local_time

MOST_LISTED = 50
"""Lines of one list in a summary; the rest is counted."""


@dataclass(frozen=True, slots=True)
class WindowRun:
    """One run of a window, with what its summary needs.

    ``status`` is the one that it is about to have: a summary is written before the run is settled.
    """

    run: RunRecord
    status: Status
    effects: Sequence[RunEffect]
    held: Sequence[Held] = ()
    left_over: int = 0
    passed_over: Mapping[str, int] = field(default_factory=dict)


def title(inputs: RunInputs, window: str) -> str:
    """The summary issue's title: constant but for the window."""
    if inputs.triage.summary is Summary.ROLLING:
        return "Triage summary"
    return f"Triage summary {window}"


def item_statuses(effects: Sequence[RunEffect], now: datetime) -> dict[int, Status]:
    """Each issue's own status, by the same table as a run's."""
    return {
        number: classify(Facts(effects=items, now=now))
        for number, items in _by_issue(effects).items()
    }


def _by_issue(effects: Sequence[RunEffect]) -> dict[int, list[RunEffect]]:
    """The effects on issues; the summary and the report are of no issue."""
    on_issues: dict[int, list[RunEffect]] = {}
    for effect in effects:
        if effect.kind not in (EffectKind.SUMMARY, EffectKind.REPORT):
            on_issues.setdefault(effect.issue, []).append(effect)
    return on_issues


def body(runs: Sequence[WindowRun], *, window: str, missed: Sequence[str], now: datetime) -> str:
    """The summary issue's body, without its marker: of each issue, what the newest run that had it
    made of it, and did not leave it to another. ``runs`` stand oldest first; ``now`` only ages what
    is unsettled."""
    newest = runs[-1].run.inputs
    latest: dict[int, list[RunEffect]] = {}
    for entry in runs:
        for number, own in _by_issue(entry.effects).items():
            if number not in latest or not _left_to_another(own):
                latest[number] = own
    effects = [effect for number in sorted(latest) for effect in latest[number]]
    items = item_statuses(effects, now)
    counts = Counter(items.values())
    undecided = [effect for effect in effects if _needs_person(effect, now)]
    held = {item.number: item for entry in runs for item in entry.held if item.number not in items}
    failed = counts[Status.FAILED_BEFORE_WRITE] + counts[Status.FAILED_AFTER_WRITE]
    head = (
        f"**{counts[Status.NEEDS_REVIEW]} need review, "
        f"{counts[Status.COMPLETED] + counts[Status.NO_CHANGE]} completed, {failed} failed** "
        f"on {window}, due {_local(newest.due_at, newest)}."
    )
    parts = [head, _table(counts)]
    review = [_review_line(effect, newest) for effect in undecided]
    parts += _section("Needs review", review)
    parts += [_decide(entry) for entry in runs if entry.status is Status.NEEDS_REVIEW]
    parts += _section(
        "Held", [f"- issue {n}: {escaped(h.reason)}" for n, h in sorted(held.items())]
    )
    parts += _section("Skipped", _skipped(effects, runs[-1].passed_over))
    parts += _section("Not yet looked at", _later(runs, missed))
    parts += _section("Policy", [escaped(newest.policy_notice)] if newest.policy_notice else [])
    parts += _section("Cost", [_cost(runs)])
    return cut("\n\n".join(parts))


def _decide(entry: WindowRun) -> str:
    key = entry.run.inputs.dedupe_key
    return (
        "Look whether it is there, then decide in a comment here, with your reason at the end: "
        f"`/retriage resolve {key} done` (it is there, or no longer wanted), `… retry` (send it "
        "again) or `… abandon`."
    )


def _left_to_another(effects: Sequence[RunEffect]) -> bool:
    return any(effect.reason in (Skip.BLOCKED, Skip.SUPERSEDED) for effect in effects)


def _table(counts: Mapping[Status, int]) -> str:
    rows = [f"| {status} | {count} |" for status, count in sorted(counts.items())]
    return "\n".join(["| Outcome | Issues |", "| --- | ---: |", *rows]) if rows else "No issue."


def _section(name: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    shown = list(lines[:MOST_LISTED])
    if len(lines) > MOST_LISTED:
        shown.append(f"- and {len(lines) - MOST_LISTED} more")
    return [f"## {name}", "\n".join(shown)]


def _needs_person(effect: RunEffect, now: datetime) -> bool:
    return effect.evidence is Evidence.CONFLICT or is_overdue(effect, now)


def _review_line(effect: RunEffect, inputs: RunInputs) -> str:
    read = f", read {_local(effect.when, inputs)}" if effect.when else ""
    return f"- issue {effect.issue}, {effect.kind}: {escaped(effect.reason)}{read}"


def _skipped(effects: Sequence[RunEffect], passed_over: Mapping[str, int]) -> list[str]:
    """Issues by the reason for which their labels were skipped, and what GitHub or the repository
    said; an issue that was locked from the start was not looked at."""
    skipped = [effect for effect in effects if effect.evidence is Evidence.SKIPPED]
    reasons = Counter(
        effect.reason.partition(":")[0] for effect in skipped if effect.kind is EffectKind.LABELS
    )
    lines = [f"- {count}: {_SKIP_WORDS.get(why, why)}" for why, count in sorted(reasons.items())]
    if locked := passed_over.get("locked"):
        lines.append(f"- {locked}: locked, not looked at")
    details = {effect.reason.partition(": ")[2] for effect in skipped} - {""}
    return lines + [f"- {escaped(detail)}" for detail in sorted(details)]


_SKIP_WORDS = {
    "human-labelled": "a person had already labelled them",
    "human-removed": "a person removed what the bot had written",
    "human-edited": "a person edited the bot's comment",
    "locked": "locked",
    "closed": "closed since",
    "deleted": "deleted since",
    "transferred": "transferred since",
    "refused": "refused by GitHub or the repository's settings",
    "blocked": "another run holds them",
    "superseded": "a later run wrote them",
    "resolved": "resolved by a person",
}


def _later(runs: Sequence[WindowRun], missed: Sequence[str]) -> list[str]:
    left = runs[-1].left_over
    lines = [f"- {left} issues over the limit of one run: the next window goes on"] if left else []
    never = sorted({*missed, *(key for entry in runs for key in entry.run.inputs.missed)})
    if never:
        lines.append(f"- windows never started: {', '.join(never)}")
    return lines


def _cost(runs: Sequence[WindowRun]) -> str:
    spent = sum(entry.run.cost.estimated_usd for entry in runs)
    sessions = sum(entry.run.cost.sessions for entry in runs)
    return f"${spent:.2f} by the SDK's estimate, in {sessions} sessions of the model"


def _local(moment: datetime, inputs: RunInputs) -> str:
    return local_time(moment, inputs.policy.schedule.timezone)


# --- The report of an observe run ---------------------------------------------------------------


def report_path(inputs: RunInputs, job: str, window: str) -> str:
    """Where the report is, relative to the data folder: the same file for the same window."""
    return f"reports/{inputs.repository}/{job}/{window}.md"


def report(
    inputs: RunInputs,
    snapshot: Snapshot,
    plan: Plan,
    effects: Sequence[RunEffect],
    *,
    earlier: str | None,
) -> str:
    """What the run would write, exactly. ``earlier`` is the file as another run of the window left
    it: then the difference follows."""
    wanted = [effect for effect in effects if effect.evidence is Evidence.ABSENT]
    lines = [
        f"# {inputs.repository}: what would be written",
        "",
        f"Run `{inputs.dedupe_key}`, observed {_local(snapshot.observed_at, inputs)}, "
        f"cut-off {_local(snapshot.query_cutoff, inputs)}, base {snapshot.base_commit[:7] or '-'}.",
        f"{len(snapshot.issues)} issues, {len(wanted)} writes, {len(plan.held)} held. "
        "Nothing was written to GitHub.",
    ]
    decided = {decision.number: decision for decision in plan.decisions}
    for issue in snapshot.issues:
        own = [effect for effect in effects if effect.issue == issue.number]
        lines += ["", f"## issue {issue.number}: {escaped(issue.title[:200])}", ""]
        decision = decided.get(issue.number)
        held = [
            f"- held: {escaped(item.reason)}" for item in plan.held if item.issue_id == issue.id
        ]
        lines += _would_write(own, decision) if decision else held
    return with_difference("\n".join(lines) + "\n", earlier)


def _would_write(effects: Sequence[RunEffect], decision: Decision) -> list[str]:
    lines: list[str] = []
    for effect in effects:
        if effect.evidence is Evidence.ABSENT:
            lines.append(f"- {effect.kind}: {effect.target}")
        else:
            lines.append(f"- {effect.kind}: {effect.evidence} {effect.reason}".rstrip())
        if effect.kind is EffectKind.COMMENT and effect.evidence is Evidence.ABSENT:
            lines += ["", *(f"  > {line}" for line in render(decision).splitlines()), ""]
    return lines
