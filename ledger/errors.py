"""What can go wrong with the ledger, by whose move is next."""


class LeaseLost(BaseException):  # a stop signal, not an error: no broad except may eat it
    """The lease is gone: whatever is under way must stop without another write."""


class LedgerUnavailableError(Exception):
    """Redis cannot be reached, or did not answer: what was asked may or may not have happened."""


class LedgerCorruptError(Exception):
    """The ledger holds what this program cannot have written: a person must look."""


class FrozenRunError(Exception):
    """A completed or no-change run was to be changed: its evidence is frozen."""


class UnknownRunError(Exception):
    """A run was to be changed, or an effect claimed for it, before it was saved."""


class StateNotSavedError(Exception):
    """What the next run would remember of this one cannot be kept: nothing of it was written."""


class DataFolderInUseError(Exception):
    """Another process has the data folder. ``folder`` names it."""

    def __init__(self, folder: str) -> None:
        super().__init__(f"the data folder {folder} is in use by another process")
        self.folder = folder


class ServerStartError(Exception):
    """The embedded server did not come up. ``log`` holds the end of what it printed."""

    def __init__(self, detail: str, log: str = "") -> None:
        super().__init__(f"{detail}\n{log}" if log else detail)
        self.detail = detail
        self.log = log
