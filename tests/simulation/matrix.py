"""The crash matrix as a table: every boundary of a run against every fault.

A cell is *the status when the run is classified → the next action*. A killed worker writes nothing:
its successor classifies. A 5xx, a refusal and a time-out are those of the request at the boundary,
or of the next one. Statuses: C completed, NC no-change, FB failed-before-write, FA
failed-after-write, W waiting, · impossible (``IMPOSSIBLE`` says why). Actions, in their order:

==  ================================================================================================
e   enqueue again                              d   drop the trigger
n   new attempt, new snapshot                  m   ask the model again on the same snapshot
p   go on with the saved plan                  z   nothing
g   ask our own record again and go on         b   give the lease up, come back when told, then …
t   take over when the lease lapses, then …    w   the same, after the lock delay, then …
nw  the next window takes it
v   (creates) seen: adopt it and go on; proved absent: send it once more with the same marker
vL  (labels) read the issue; do what is missing
==  ================================================================================================
"""

from dataclasses import dataclass
from typing import Final

BOUNDARIES: Final = (
    "enqueue",
    "lease acquired",
    "snapshot saved",
    "model answered",
    "effect claimed",
    "comment request sent",
    "comment acknowledged",
    "label request sent",
    "label acknowledged",
    "read-back",
    "item status saved",
    "summary sent",
    "summary acknowledged",
    "completed, lease released",
)
FAULTS: Final = (
    "kill -9",
    "timeout",
    "lost reply",
    "5xx, applied",
    "5xx, not applied",
    "403 / 429",
    "lease lost",
    "Redis down",
    "duplicate trigger",
    "stale read",
)

TABLE: Final = """
 0 | e        | e       | e     | ·    | ·      | ·      | ·       | e        | d | ·
 1 | FB→t n   | FB→b n  | g     | ·    | FB→b n | FB→b n | FB→t n  | FB→t n   | d | NC→nw
 2 | FB→t m   | FB→m    | g     | ·    | FB→m   | FB→b m | FB→t m  | FB→t m/n | d | g
 3 | FB→t p/m | FB→p    | g→p   | ·    | FB→m   | FB→b m | FB→t p  | FB→t p/m | d | g
 4 | FA→w v   | FA→v    | g     | ·    | ·      | W→b p  | FA→w v  | FA→w v   | d | g
 5 | FA→w v   | FA→v    | FA→v  | FA→v | FA→v   | FB→b p | FA→w v  | FA→w v   | d | FA→v
 6 | FA→w p   | FA→p    | g     | ·    | ·      | FA→b p | FA→w p  | FA→w v   | d | g
 7 | FA→w vL  | FA→vL   | FA→vL | FA→vL| FA→vL  | FA→b p | FA→w vL | FA→w vL  | d | FA→vL
 8 | FA→w p   | FA→p    | g     | ·    | ·      | FA→b p | FA→w p  | FA→w vL  | d | g
 9 | FA→w v   | FA→v    | g     | ·    | FA→v   | FA→b v | FA→w v  | FA→w v   | d | g
10 | FA→w p   | FA→p    | g     | ·    | ·      | FA→b p | FA→w v  | FA→w v   | d | g
11 | FA→w v   | FA→v    | FA→v  | FA→v | FA→v   | FA→b p | FA→w v  | FA→w v   | d | FA→v
12 | FA→w v   | FA→v    | g     | ·    | ·      | FA→b v | FA→w v  | FA→w v   | d | g
13 | C→z      | C→z     | C→z   | ·    | ·      | C→z    | C→z     | C→z      | d | C→z
"""

TABLE_OF_REVIEW: Final = """
 0 | e        | e       | e     | ·    | ·      | ·      | ·       | e        | d | ·
 1 | FB→t n   | FB→b n  | g     | ·    | FB→b n | FB→b n | FB→t n  | FB→t n   | d | g
 2 | FB→t m   | FB→m    | g     | ·    | FB→m   | FB→b m | FB→t m  | FB→t m/n | d | g
 3 | FB→t p/m | FB→p    | g→p   | ·    | FB→m   | FB→b m | FB→t p  | FB→t p/m | d | g
 4 | FA→w v   | FA→v    | g     | ·    | ·      | W→b p  | FA→w v  | FA→w v   | d | g
 5 | ·        | ·       | ·     | ·    | ·      | ·      | ·       | ·        | · | ·
 6 | ·        | ·       | ·     | ·    | ·      | ·      | ·       | ·        | · | ·
 7 | ·        | ·       | ·     | ·    | ·      | ·      | ·       | ·        | · | ·
 8 | ·        | ·       | ·     | ·    | ·      | ·      | ·       | ·        | · | ·
 9 | FA→w v   | FA→v    | g     | ·    | FA→v   | FA→b v | FA→w v  | FA→w v   | d | g
10 | FA→w p   | ·       | g     | ·    | ·      | ·      | FA→w v  | FA→w v   | d | g
11 | FA→w v   | FA→v    | FA→v  | FA→v | FA→v   | FB→b p | FA→w v  | FA→w v   | d | FA→v
12 | FA→w v   | FA→v    | g     | ·    | ·      | FA→b v | FA→w v  | FA→w v   | d | g
13 | C→z      | C→z     | C→z   | ·    | ·      | C→z    | C→z     | C→z      | d | C→z
"""
"""A review's, whose one effect is its page."""

ORDER_OF_REVIEW: Final = (0, 1, 2, 3, 4, 11, 12, 9, 10, 13)
"""The boundaries as a review passes them."""

_ANSWERS_OF_REDIS = "Redis answers here, which has no status 5xx"
_NOTHING_FOLLOWS = "the page was the last that is asked of GitHub"
_NO_REQUEST = "no request is sent here that could be refused or fail"

IMPOSSIBLE: Final = {
    **{(row, "5xx, applied"): "only a write can be applied and answered 5xx" for row in range(14)},
    (0, "5xx, not applied"): _ANSWERS_OF_REDIS,
    (0, "403 / 429"): "nothing is asked of GitHub or the model before the run",
    (0, "lease lost"): "no lease is held yet",
    (0, "stale read"): "nothing is read of GitHub before the run",
    **{(row, "5xx, not applied"): _ANSWERS_OF_REDIS for row in (4, 6, 8, 10, 12)},
    (13, "5xx, not applied"): _NO_REQUEST,
}
"""Why a cell is ·, by row and fault; a cell of the table wins."""

IMPOSSIBLE_FOR_REVIEW: Final = {
    **IMPOSSIBLE,
    **{
        (row, fault): "a review comments on nothing and labels nothing"
        for row in range(5, 9)
        for fault in FAULTS
    },
    (10, "timeout"): _NOTHING_FOLLOWS,
    (10, "403 / 429"): _NOTHING_FOLLOWS,
}

IMPOSSIBLE_FOR_FIRST: Final = {
    (3, "timeout"): "the next request is the page's own, which is boundary 11",
}
"""Of a review that makes its page, beside those."""

IMPOSSIBLE_FOR_LATER: Final = {
    (0, fault): "the trigger knows nothing of a page: a first review tells it" for fault in FAULTS
}
"""Of a review that edits its page, beside those."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A row, a fault, and what must follow. ``status`` is empty where the run goes on to its end;
    ``steps`` are the letters of the action."""

    row: int
    fault: str
    status: str
    steps: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.row} {BOUNDARIES[self.row]} x {self.fault}"

    @property
    def next_row(self) -> int:
        """The boundary after this one; itself for the last."""
        return min(self.row + 1, len(BOUNDARIES) - 1)


def _cells(table: str) -> dict[tuple[int, str], Cell]:
    found = {}
    for line in table.strip().splitlines():
        number, *texts = (part.strip() for part in line.split("|"))
        for fault, text in zip(FAULTS, texts, strict=True):
            if text != "·":
                status, arrow, action = text.partition("→")
                known = arrow and status in ("C", "NC", "FB", "FA", "W")
                steps = (action if known else text.replace("→", " ")).split()
                key = (int(number), fault)
                found[key] = Cell(*key, status if known else "", tuple(steps))
    return found


CELLS: Final = _cells(TABLE)
"""What is possible, by row and fault."""

CELLS_OF_REVIEW: Final = _cells(TABLE_OF_REVIEW)
