"""Random schedules: whatever happens, in whatever order, the invariants hold after each deed.

Lists that lag by more than the absence window are another story: they converge, and it is told as
an incident (``test_late_writers.py``, ``test_lag_above_the_window_is_converged``).
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict
from random import Random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.simulation.scene import Scene, bring_to_an_end, perform, scene
from tests.simulation.schedules import DEEDS, OPENINGS, run_schedules, run_seeds
from tests.simulation.virtual import VirtualLoop

BATCH = 300
DICE = st.integers(0, 2**32 - 1)


class Schedule(RuleBasedStateMachine):
    """One world, with each deed as a rule. Workers that stand are tasks of a loop that only runs
    while a rule does."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.broken = False
        self.stage: AbstractAsyncContextManager[Scene] | None = None
        self.on: Scene | None = None

    @initialize(seed=DICE, opening=st.sampled_from(OPENINGS))
    def opens(self, seed: int, opening: tuple[str, ...]) -> None:
        """A world, and how its schedule begins."""
        dice = Random(seed)
        self.stage = scene(dice)
        self.on = self.loop.run_until_complete(self.stage.__aenter__())
        for name in opening:
            self.perform(name, dice.randrange(2**32))

    def perform(self, name: str, seed: int) -> None:
        """One deed, where it is possible now."""
        if self.on is None:
            return
        try:
            self.loop.run_until_complete(perform(self.on, name, DEEDS[name][0], Random(seed)))
        except BaseException:
            self.broken = True
            raise

    @invariant()
    def holds(self) -> None:
        """I1 to I6."""
        if self.on is not None and not self.broken:
            self.on.books.check()

    def teardown(self) -> None:
        """Everything is let go: every run ends (I7), and twice more changes nothing."""
        try:
            if self.on is not None and not self.broken:
                self.loop.run_until_complete(bring_to_an_end(self.on))
        finally:
            if self.on is not None and self.stage is not None:
                self.loop.run_until_complete(self.stage.__aexit__(None, None, None))
            self.loop.close()


def _rule(name: str) -> Callable[..., None]:
    def deed(self: Schedule, seed: int) -> None:
        self.perform(name, seed)

    deed.__name__ = name.replace(" ", "_").replace("/", "")
    deed.__doc__ = DEEDS[name][0].__doc__
    return rule(seed=DICE)(deed)


for _name in DEEDS:
    setattr(Schedule, f"rule_{_name.replace(' ', '_').replace('/', '')}", _rule(_name))

TestSchedule = Schedule.TestCase
TestSchedule.settings = settings(
    max_examples=200,
    stateful_step_count=15,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def test_a_batch_of_schedules() -> None:
    """The same seeds each time. Among them are all deeds, and the statuses that matter."""
    found = run_seeds(range(BATCH))
    assert not found.violations, found.violations[0]["text"]
    assert found.schedules == BATCH
    assert set(found.deeds) == set(DEEDS)
    wanted = {"completed", "no-change", "failed-after-write", "failed-before-write", "needs-review"}
    assert wanted <= set(found.statuses)
    assert set(found.incidents) <= {"duplicate", "ledger-lost"}


def test_schedules_are_the_same_in_any_number_of_processes() -> None:
    """What is counted follows from the seed alone."""
    one, two = (asdict(run_schedules(24, 900_000, jobs=jobs)) for jobs in (1, 2))
    for took in ("seconds", "cpu_seconds"):
        assert one.pop(took) > 0
        assert two.pop(took) > 0
    assert one == two
