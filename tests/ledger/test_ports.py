"""The ledger is what the pipeline asks for."""

from tests.ledger.places import AnyLedger
from worker.ports import LedgerPorts


async def test_the_ledger_has_the_shape_of_the_ports(ledger: AnyLedger) -> None:
    """The type checker reads this: each part fits the port of the same name."""
    ports = LedgerPorts(
        leases=ledger.leases,
        runs=ledger.runs,
        effects=ledger.effects,
        due=ledger.due,
        budgets=ledger.budgets,
        repositories=ledger.repositories,
        epochs=ledger.epochs,
        sessions=ledger.sessions,
        reviews=ledger.reviews,
    )
    assert ports.leases is ledger.leases
