"""``docs/crash-proof.md``: the report of a run of the proof.

The document is a function of the figures that stand at its end, so that anybody can tell whether it
was edited, and of the code's tables, so that it can be told to be stale.
"""

import json
from pathlib import Path
from typing import Any, Final

from tests.proof.figures import Figures, holds, tables

PATH: Final = Path(__file__).resolve().parents[2] / "docs" / "crash-proof.md"
_FENCE: Final = "```json\n"


def write(figures: Figures) -> None:
    """Write the report of these figures."""
    PATH.write_text(render({**figures, "tables": tables()}), encoding="utf-8")


def figures_in(text: str) -> Figures:
    """The figures at the end of a report. Raises ValueError where there are none."""
    _, fence, rest = text.rpartition(_FENCE)
    if not fence:
        raise ValueError("the report has no figures")
    found: Figures = json.loads(rest.partition("\n```")[0])
    return found


def told(figures: Figures) -> str:
    """The figures for a person at a terminal."""
    mutations = figures["mutations"]
    lines = [
        f"cells of the matrix   {figures['cells']}",
        f"pairs of faults       {figures['pairs']}",
        f"random schedules      {figures['schedules']}",
        f"rounds of processes   {figures['rounds']}, {figures['orphans']} processes left",
        f"guards switched off   {mutations['of']}, missed {mutations['caught']}",
        f"violations            {figures['violations']}",
        f"incidents             {figures['incidents']} (requests that outlived every deadline)",
    ]
    parts: dict[str, Any] = figures["details"]
    for part, details in parts.items():
        found = details if part == "mutations" else details["violations"]
        lines += [f"{part}: {_one(item)}" for item in found if not item.get("caught")]
    lines.append("everything holds" if holds(figures) else "it does not hold")
    return "\n".join(lines) + "\n"


def _one(item: Figures) -> str:
    return "; ".join(f"{name} {value}" for name, value in item.items() if value != "")


def render(figures: Figures) -> str:
    """The whole report."""
    parts = [
        _HEAD.format(**figures, mutants=_mutants(figures)),
        _matrix(figures["tables"]),
        _pairs(figures),
        _schedules(figures),
        _rounds(figures),
        _guards(figures),
        _LIMITS,
        "## The figures\n\nAs `script/simulate --report` printed them.\n\n"
        f"{_FENCE}{json.dumps(figures, indent=1, ensure_ascii=False)}\n```\n",
    ]
    return "\n".join(parts)


def _mutants(figures: Figures) -> str:
    return f"{figures['mutations']['caught']} of {figures['mutations']['of']}"


def _table(head: list[str], rows: list[list[object]]) -> str:
    lines: list[list[object]] = [[*head], ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def _matrix(known: dict[str, Any]) -> str:
    rows: list[list[object]] = []
    for line in known["cells"]:
        number, *cells = (part.strip() for part in line.split("|"))
        rows.append([f"{number} {known['boundaries'][int(number)]}", *cells])
    why = "\n".join(f"- {reason}" for reason in known["impossible"])
    return (
        f"{_MATRIX}\n{_table(['at / after', *known['faults']], rows)}\n"
        f"A cell that is · is impossible:\n\n{why}\n"
    )


def _pairs(figures: Figures) -> str:
    endings = figures["details"]["pairs"]["endings"]
    rows: list[list[object]] = [[name, count] for name, count in endings.items()]
    return f"{_PAIRS.format(**figures)}\n{_table(['ended', 'pairs'], rows)}"


def _schedules(figures: Figures) -> str:
    details = figures["details"]["schedules"]
    rows: list[list[object]] = [[name, count] for name, count in details["deeds"].items()]
    statuses = ", ".join(f"{name} {count}" for name, count in details["statuses"].items())
    text = _SCHEDULES.format(
        **figures, seed=details["seed"], each=details["cpu_ms_each"], statuses=statuses
    )
    return f"{text}\n{_table(['deed', 'times'], rows)}"


def _rounds(figures: Figures) -> str:
    details = figures["details"]["rounds"]
    rows: list[list[object]] = [[name, count] for name, count in details["kinds"].items()]
    text = _ROUNDS.format(
        **{**figures, "incidents": details["incidents"]},
        seed=details["seed"],
        reviews=details["needs_review"],
    )
    return f"{text}\n{_table(['fault', 'rounds'], rows)}"


def _guards(figures: Figures) -> str:
    rows: list[list[object]] = [
        [item["guard"], item["invariant"], f"`{item['by']}`", _code(item["script_by"])]
        for item in figures["details"]["mutations"]
    ]
    head = ["guard", "invariant", "first noticed by", "in the real ledger by"]
    return f"{_GUARDS.format(mutants=_mutants(figures))}\n{_table(head, rows)}"


def _code(text: str) -> str:
    return f"`{text}`" if text else "(not in a script)"


_HEAD = """\
# The crash proof

The promise: **at most one effect per key within the verified window; otherwise needs-review.** This
page is written by `script/simulate --report`, from a run on two cores; a test fails when it is
stale against the code's tables. Anybody can run it:

```
script/simulate --json                     # a short run of everything
script/simulate --schedules 20000 --seed 1 # random schedules
script/simulate --processes                # 2,000 rounds with real processes
script/simulate --mutations                # each guard switched off in turn
```

This run: {cells} cells of the crash matrix, {pairs} pairs of faults, {schedules} random schedules,
{rounds} rounds with real processes, {mutants} guards missed when they were switched off.
**Violations: {violations}. Processes left behind: {orphans}.** Incidents: {incidents}, each of a
request that outlived every deadline or of what a lost ledger had forgotten, told of and converged.

What is checked after every step, in every part:

- **I1** at most one live marker per effect key (after convergence, where a request outlived every
  deadline)
- **I2** no write, reactions apart, without an earlier durable claim
- **I3** completed means that every planned effect was seen on GitHub, or skipped with a reason
- **I4** failed-before-write means that none of this run's effects is on GitHub
- **I5** no write outside the write scope
- **I6** a status changes only under the current fence
- **I7** every run ends within a bounded time, or needs a person
- **P** what a person did wins, and what is asked for is done once
"""

_MATRIX = """\
## The crash matrix

Every boundary of a run against every fault. Each cell is a story: the fault strikes exactly there,
the run is classified, the next action is the one that stands here, the next run ends it, and two
more change nothing. A cell is the status, an arrow, the next action; without a status the same
attempt goes on to `completed`.

`C` completed, `NC` no-change, `FB` failed-before-write, `FA` failed-after-write, `W` waiting. `e`
enqueue again, `d` drop the trigger, `n` a new snapshot, `m` ask the model again on the same
snapshot, `p` go on with the saved plan, `z` nothing, `g` ask our own record again and go on, `t`
take over when the lease lapses, `w` the same after the lock delay, `b` give the lease up and come
back when told, `v` look for what was created (seen: adopt it; proved absent: send it once more),
`vL` read the issue and do what is missing, `nw` the next window takes it.
"""

_PAIRS = """\
## Pairs of faults

{pairs} ordered pairs: every possible fault followed by every possible one, at the same boundary or
at the next. After some first faults the second has nothing left to strike.
"""

_SCHEDULES = """\
## Random schedules

{schedules} schedules from seed {seed}, {each} ms of CPU each: workers of the real pipeline that are
stepped, stopped, cut off and killed at any call, while triggers come, people act, lists lag and
flap, and the ledger is restarted, wiped or replaced by a replica that lacks the last writes.
Statuses reached: {statuses}. `python -m tests.simulation.schedules --seed S` replays one.
"""

_ROUNDS = """\
## Rounds with real processes

{rounds} rounds of seed {seed}: RQ workers, a real server, the agent SDK with its CLI, HTTP over
loopback. Incidents {incidents}: the rounds in which a request was held back for longer than every
deadline. Runs that a person must decide: {reviews}.
"""

_GUARDS = """\
## The guards

Each guard is switched off in a copy of the program, and the suite must fail; one whose removal
nothing noticed would be a missing test, or a guard that is not needed. Missed: {mutants}.
"""

_LIMITS = """\
## What the promise does not cover

- **GitHub compares no fencing token.** A request that is already under way cannot be recalled. The
  lease, the lock delay and hard time-outs make it die first; one that outlives them all (a proxy
  that holds it back, a process that was stopped after its last check) lands late. The program looks
  for it one absence window later, keeps the lowest id, deletes its own later one, and counts an
  incident: two may have been seen in between.
- **A view that lags for longer than the absence window** (15 minutes, in both views at once) can
  hide a comment from all five reads. It is sent a second time, found by the late look, and
  converged in the same way.
- **A lost ledger** takes with it the decisions of people on needs-review and the tombstones of
  comments that were deleted while nobody listened. Comments, summaries and labels are read back
  from GitHub before anything is written.
- **Two ledgers** for one App know nothing of each other.
- **A data folder that is put back from an old copy** looks like a server that was restarted, unless
  its key `epoch` is deleted.
- **A person who edits** the marker line of the bot's comment makes it a conflict: the program stops
  and asks.
"""
