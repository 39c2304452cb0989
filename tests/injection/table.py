"""The table of ``docs/security.md``: the corpus by kinds, without the program and with it.

``python -m tests.injection.table`` measures, and writes the table into the page.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from sandbox.model import Misbehaviour
from tests.injection.attack import Attack, Kind, reached
from tests.injection.corpus import ATTACKS
from tests.injection.pipeline import Outcome, measure
from tests.injection.unguarded import carry_out

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
HEAD = """\
| kind | attacks | reached without the program | reached with it | of the rest, held |
| --- | ---: | ---: | ---: | ---: |
"""


def reached_unguarded(folder: Path) -> frozenset[str]:
    """The attacks that reach their goal where nothing is in between, by their ids."""
    return frozenset(attack.id for attack in ATTACKS if _succeeds(attack, folder))


def table(outcomes: Sequence[Outcome], unguarded: frozenset[str]) -> str:
    """A row for each kind, and the sum; last the attacks that reach their goal all the same."""
    rows = [
        _row(kind.value, [each for each in outcomes if each.attack.kind is kind], unguarded)
        for kind in Kind
    ]
    left = sorted(each.attack.id for each in outcomes if _reaches(each))
    listed = ", ".join(f"`{name}`" for name in left) or "none"
    rows.append(_row("**all**", outcomes, unguarded))
    return f"{HEAD}{''.join(rows)}\nStill reached: {listed}.\n"


def on_the_page(text: str) -> str:
    """The table as the page has it."""
    return text.partition(BEGIN)[2].partition(END)[0]


def _row(name: str, outcomes: Sequence[Outcome], unguarded: frozenset[str]) -> str:
    cells = (
        len(outcomes),
        sum(each.attack.id in unguarded for each in outcomes),
        sum(map(_reaches, outcomes)),
        sum(each.held and not _reaches(each) for each in outcomes),
    )
    return f"| {name} | {' | '.join(map(str, cells))} |\n"


def _reaches(outcome: Outcome) -> bool:
    return reached(outcome.attack.goal, outcome.seen)


def _succeeds(attack: Attack, folder: Path) -> bool:
    own = folder / attack.id
    own.mkdir(parents=True)
    return reached(attack.goal, carry_out(attack, own, Misbehaviour.OBEDIENT))


def _write(lines: Iterable[str]) -> None:
    head, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(head + BEGIN + "".join(lines) + END + rest.partition(END)[2])


if __name__ == "__main__":
    with TemporaryDirectory() as name:
        made = Path(name)
        _write([table(measure(made).outcomes, reached_unguarded(made / "unguarded"))])
