"""The ledger's identity, asked before anything is done: whoever finds it lost has it recovered."""

from datetime import datetime

from ledger.records import Due, DueKind, Epoch
from worker.ports import Ports


async def standing_epoch(ports: Ports) -> Epoch:
    """The epoch that stands. Where it was just set anew, reading GitHub back falls due at once."""
    epoch = await ports.ledger.epochs.ensure(first=False)
    if epoch.changed:
        if epoch.replaces:
            ports.log("INCIDENT", kind="ledger-lost", epoch=epoch.id, until=epoch.quiet_until)
            await ports.ledger.effects.incident("ledger-lost", f"epoch {epoch.id}")
        else:
            ports.log("LEDGER-NEW", epoch=epoch.id, until=epoch.quiet_until)
        await ports.ledger.due.add(Due(DueKind.RECOVER, "ledger"), ports.clock.now())
    return epoch


async def quiet_until(ports: Ports) -> datetime | None:
    """Until when nothing is written, because GitHub has to be read first; None where that is not
    so."""
    until = (await standing_epoch(ports)).quiet_until
    return until if until is not None and ports.clock.now() < until else None
