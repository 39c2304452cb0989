"""What a schedule raises where something does not hold."""


class Violation(AssertionError):  # noqa: N818 - what it is called
    """An invariant does not hold.

    ``invariant``: ``I1`` to ``I7``, or ``P: `` and a rule of the design. ``seed`` replays it,
    ``deeds`` led to it.
    """

    def __init__(self, invariant: str, what: str) -> None:
        super().__init__(invariant, what)
        self.invariant = invariant
        self.what = what
        self.seed: int | None = None
        self.deeds: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One readable text."""
        told = [f"{n:3} {deed}" for n, deed in enumerate(self.deeds, start=1)]
        where = [] if self.seed is None else [f"seed {self.seed}"]
        return "\n".join([f"{self.invariant}: {self.what}", *where, *told])
