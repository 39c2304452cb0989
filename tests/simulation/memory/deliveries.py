"""Webhook deliveries, and what they ask for: the translation of ``ledger.deliveries``."""

from collections.abc import Callable, Iterable
from datetime import datetime

from ledger.codec import stamp
from ledger.deliveries import ASK_KEPT, KEPT, delivery_keys
from ledger.records import Due, DueKind
from ledger.timing import milliseconds
from tests.simulation.memory.rows import Kept
from tests.simulation.memory.server import MemoryServer


class Transaction:
    """What is done together or not at all, in place of a pipeline."""

    def __init__(self) -> None:
        self._deeds: list[Callable[[], object]] = []

    def add(self, deed: Callable[[], object]) -> None:
        """Have this done as well."""
        self._deeds.append(deed)

    def execute(self) -> None:
        """Do it all."""
        for deed in self._deeds:
            deed()


class MemoryDeliveries:
    """Deliveries that were accepted."""

    def __init__(self, server: MemoryServer) -> None:
        self._server = server

    def accept(self, guid: str, meaning: str, enqueue: Callable[[Transaction], object]) -> bool:
        """Do what ``enqueue`` adds to the transaction, unless this delivery, or one that means the
        same, did so. False for a duplicate; an empty meaning is like no other."""
        server, deliveries = self._server, self._server.state.deliveries
        keys = delivery_keys(guid, meaning)
        known = [key for key in keys if server.living(deliveries.get(key)) is not None]
        if known:
            return False
        transaction = Transaction()
        enqueue(transaction)
        expires = server.millis + milliseconds(KEPT)
        deliveries.update(dict.fromkeys(keys, Kept(guid, expires)))
        transaction.execute()
        return True

    def keep(self, transaction: Transaction, due: Due, ask: str, again_at: datetime) -> None:
        """Have what is asked for come again at that time, unless it was done by then."""

        def write() -> None:
            state = self._server.state
            state.asks[due.name] = Kept(ask, self._server.millis + milliseconds(ASK_KEPT))
            state.due[str(due)] = stamp(again_at)

        transaction.add(write)

    def asks(self, dues: Iterable[Due]) -> dict[Due, str]:
        """What these ask for; without those that were tried long enough."""
        server, asks = self._server, self._server.state.asks
        found = {due: server.living(asks.get(due.name)) for due in dues if due.kind is DueKind.ASK}
        return {due: ask for due, ask in found.items() if ask is not None}

    def accepted(self, guid: str) -> bool:
        """Whether a delivery is known."""
        server = self._server
        return server.living(server.state.deliveries.get(f"delivery:{guid}")) is not None
