"""``script/simulate``: run the proof, or parts of it, and say what came of it.

Without a part: the matrix, its pairs, random schedules, rounds with real processes, and the
mutation check. Progress goes to standard error.

Exit codes: 0 everything holds; 1 an invariant does not, a process was left, or a guard was not
missed; 2 the usage.
"""

import argparse
import copy
import json
import sys

from tests.processes.rounds import run_rounds
from tests.proof import figures as counted
from tests.proof import report
from tests.simulation.mutations import mutate
from tests.simulation.schedules import run_schedules
from tests.simulation.telling import JOBS, tell_cells, tell_pairs

USUAL_SCHEDULES, MANY_SCHEDULES = 2_000, 20_000
USUAL_ROUNDS, REPORTED_ROUNDS, MANY_ROUNDS = 40, 200, 2_000


def main(arguments: list[str]) -> int:
    """Run what is asked for; the exit code."""
    asked = _read(arguments)
    figures = copy.deepcopy(counted.NOTHING)
    if asked.matrix:
        _say("the matrix")
        counted.add_cells(figures, tell_cells())
        _say("every pair of faults")
        counted.add_pairs(figures, tell_pairs())
    if asked.schedules:
        _say(f"{asked.schedules} random schedules of seed {asked.seed}")
        ran = run_schedules(asked.schedules, asked.seed, jobs=JOBS)
        counted.add_schedules(figures, asked.seed, ran)
    if asked.processes:
        _say(f"{asked.processes} rounds with real processes")
        counted.add_rounds(figures, asked.seed, run_rounds(asked.processes, asked.seed))
    if asked.mutations:
        counted.add_mutations(figures, mutate())
    if asked.report:
        report.write(figures)
    sys.stdout.write(json.dumps(figures, indent=2) + "\n" if asked.json else report.told(figures))
    return 0 if counted.holds(figures) else 1


def _read(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="script/simulate", description="Run the proof, or the parts of it that are named."
    )
    parser.add_argument("--matrix", action="store_true", help="the crash matrix and its pairs")
    parser.add_argument(
        "--schedules",
        type=_count,
        nargs="?",
        const=MANY_SCHEDULES,
        default=0,
        metavar="N",
        help=f"random schedules; {MANY_SCHEDULES} where no number is given",
    )
    parser.add_argument(
        "--processes",
        type=_count,
        nargs="?",
        const=MANY_ROUNDS,
        default=0,
        metavar="N",
        help=f"rounds with real processes; {MANY_ROUNDS} where no number is given",
    )
    parser.add_argument("--mutations", action="store_true", help="switch off each guard in turn")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of schedules and rounds")
    parser.add_argument("--report", action="store_true", help="all, and write docs/crash-proof.md")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    asked = parser.parse_args(arguments)
    some = asked.matrix or asked.schedules or asked.processes or asked.mutations
    if asked.report or not some:
        asked.matrix = asked.mutations = True
        many = MANY_SCHEDULES if asked.report else USUAL_SCHEDULES
        asked.schedules = asked.schedules or many
        rounds = REPORTED_ROUNDS if asked.report else USUAL_ROUNDS
        asked.processes = asked.processes or rounds
    return asked


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above zero")
    return number


def _say(what: str) -> None:
    sys.stderr.write(f"simulate: {what}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
