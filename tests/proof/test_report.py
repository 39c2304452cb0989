"""The report is true: a function of its figures, and of the tables that the code has."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.proof import __main__ as command
from tests.proof import report
from tests.proof.figures import NOTHING, Figures, holds, tables
from tests.simulation.guards import GUARDS, Edit, missing
from tests.simulation.mutations import ROOT, StaleEditError, copied


@pytest.fixture(scope="module")
def figures() -> Figures:
    """What stands at the end of docs/crash-proof.md."""
    return report.figures_in(report.PATH.read_text(encoding="utf-8"))


def test_the_report_was_not_edited(figures: Figures) -> None:
    """The page is a function of its figures."""
    assert report.render(figures) == report.PATH.read_text(encoding="utf-8")


def test_the_report_is_not_stale(figures: Figures) -> None:
    """Matrix, deeds, faults and guards are those of the code; where one changed, run
    ``script/simulate --report`` again."""
    assert figures["tables"] == tables()
    assert set(figures["details"]["schedules"]["deeds"]) == set(tables()["deeds"])
    assert [item["guard"] for item in figures["details"]["mutations"]] == tables()["guards"]
    assert figures["cells"] == len([key for line in tables()["cells"] for key in _cells(line)])
    assert figures["pairs"] == tables()["pairs"]


def _cells(line: str) -> list[str]:
    return [cell for cell in line.split("|")[1:] if cell.strip() != "·"]


def test_the_report_is_of_a_long_run_in_which_all_held(figures: Figures) -> None:
    """Numbers worth reporting, no violation in any of them, and every guard missed."""
    assert figures["schedules"] >= command.MANY_SCHEDULES
    assert figures["rounds"] >= command.REPORTED_ROUNDS
    assert holds(figures)


def test_every_guard_still_stands_where_it_is_switched_off() -> None:
    """An edit whose text is gone would switch nothing off."""
    edits = [edit for guard in GUARDS for edit in (*guard.edits, *guard.script)]
    assert missing({edit.path: (ROOT / edit.path).read_text() for edit in edits}) == []


def test_a_stale_edit_is_refused(tmp_path: Path) -> None:
    """A mutation check that changes nothing would prove nothing."""
    with pytest.raises(StaleEditError, match="not exactly one"):
        copied(tmp_path, [Edit("triage/marker.py", "no such line", "")])


@pytest.mark.parametrize(
    "spoiled",
    [
        {"violations": 1},
        {"orphans": 1},
        {"mutations": {"caught": 19, "of": 20}},
    ],
)
def test_what_does_not_hold_is_said(spoiled: Figures) -> None:
    """A violation, an orphan and a guard that nothing missed each make the command fail."""
    figures = copy.deepcopy(NOTHING)
    assert holds(figures)
    assert report.told(figures).endswith("everything holds\n")
    assert not holds({**figures, **spoiled})
    assert report.told({**figures, **spoiled}).endswith("it does not hold\n")


def test_the_command_prints_its_figures() -> None:
    """A few schedules, as a program would ask for them."""
    done = _simulate("--schedules", "6", "--seed", "4", "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert (printed["schedules"], printed["violations"]) == (6, 0)
    assert set(printed) == set(NOTHING)


@pytest.mark.parametrize("wrong", [["--schedules", "0"], ["--schedules", "many"], ["--nothing"]])
def test_wrong_usage_is_one_line(wrong: list[str]) -> None:
    """Exit 2, and the last line says what is wrong."""
    done = _simulate(*wrong)
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith("script/simulate: error: ")


def _simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.proof", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
