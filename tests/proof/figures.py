"""What a run of the proof came to, as one JSON object, and the tables that it was run on."""

from dataclasses import asdict
from typing import Any, Final

from tests.processes.faults import Kind
from tests.processes.rounds import Rounds
from tests.simulation.guards import GUARDS
from tests.simulation.matrix import BOUNDARIES, CELLS, FAULTS, IMPOSSIBLE, TABLE
from tests.simulation.mutations import Caught
from tests.simulation.pairs import pairs
from tests.simulation.schedules import DEEDS, Schedules
from tests.simulation.telling import Told

Figures = dict[str, Any]

NOTHING: Final[Figures] = {
    "cells": 0,
    "pairs": 0,
    "schedules": 0,
    "rounds": 0,
    "mutations": {"caught": 0, "of": 0},
    "violations": 0,
    "incidents": 0,
    "orphans": 0,
    "details": {},
}
"""Before anything was run."""


def tables() -> dict[str, Any]:
    """What the code holds: a report that was made of other tables is stale."""
    return {
        "boundaries": list(BOUNDARIES),
        "faults": list(FAULTS),
        "cells": [line.strip() for line in TABLE.strip().splitlines()],
        "impossible": sorted({why for key, why in IMPOSSIBLE.items() if key not in CELLS}),
        "pairs": sum(1 for _ in pairs()),
        "deeds": sorted(DEEDS),
        "rounds": sorted(str(kind) for kind in Kind),
        "guards": [guard.name for guard in GUARDS],
    }


def add_cells(figures: Figures, told: Told) -> None:
    """The cells of the matrix."""
    figures["cells"] = told.stories
    _add(figures, "cells", {"endings": dict(sorted(told.endings.items()))}, told.violations)


def add_pairs(figures: Figures, told: Told) -> None:
    """The pairs of faults."""
    figures["pairs"] = told.stories
    _add(figures, "pairs", {"endings": dict(sorted(told.endings.items()))}, told.violations)


def add_schedules(figures: Figures, seed: int, ran: Schedules) -> None:
    """Random schedules. An incident there is one that the schedule brought about, and that the
    invariants allow."""
    figures["schedules"] = ran.schedules
    figures["incidents"] += sum(ran.incidents.values())
    details = {
        "seed": seed,
        "deeds": ran.deeds,
        "statuses": ran.statuses,
        "incidents": ran.incidents,
        "cpu_ms_each": round(1000 * ran.cpu_seconds / max(1, ran.schedules), 1),
        "seconds": round(ran.seconds),
    }
    _add(figures, "schedules", details, ran.violations)


def add_rounds(figures: Figures, seed: int, ran: Rounds) -> None:
    """Rounds with real processes. A process that was left is a violation too."""
    figures["rounds"] = ran.count
    figures["incidents"] += ran.incidents
    figures["orphans"] = ran.orphans
    details = {
        "seed": seed,
        "kinds": ran.by_kind,
        "boundaries": ran.by_boundary,
        "incidents": ran.incidents,
        "orphans": ran.orphans,
        "needs_review": ran.reviews,
        "seconds": round(ran.seconds),
    }
    _add(figures, "rounds", details, [asdict(item) for item in ran.violations])


def add_mutations(figures: Figures, found: list[Caught]) -> None:
    """The guards that were switched off, and what noticed it."""
    caught = sum(item.caught for item in found)
    figures["mutations"] = {"caught": caught, "of": len(found)}
    figures["details"]["mutations"] = [
        {
            "guard": item.guard,
            "caught": item.caught,
            "invariant": item.invariant,
            "by": item.by,
            "script_by": item.script,
        }
        for item in found
    ]


def holds(figures: Figures) -> bool:
    """Whether nothing was violated, no process left, and every guard missed."""
    mutations = figures["mutations"]
    missed = mutations["caught"] == mutations["of"]
    return bool(missed and figures["violations"] == 0 and figures["orphans"] == 0)


def _add(figures: Figures, part: str, details: Figures, violations: list[Any]) -> None:
    figures["violations"] += len(violations)
    told = [item if isinstance(item, dict) else asdict(item) for item in violations]
    figures["details"][part] = {**details, "violations": told}
