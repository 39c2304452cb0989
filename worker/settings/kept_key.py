"""A marker key for the command line without an App, kept under the data folder, mode 0600."""

import fcntl
import os
import secrets
from pathlib import Path
from typing import Final

from triage.marker import MalformedMarkerKeyError, MarkerKeys
from worker.settings.problems import SettingsError

KEY_FILE: Final = "marker-keys"


def kept_marker_keys(folder: Path) -> MarkerKeys:
    """The key of this folder, made if there is none; two callers at once get the same one.

    Raises SettingsError where the folder or the file cannot be used.
    """
    path = folder / KEY_FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (folder / f"{KEY_FILE}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                _write(path, f"k{secrets.token_hex(4)}:{secrets.token_hex(32)}\n")
            return MarkerKeys.parse(path.read_text(encoding="ascii"))
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise SettingsError((f"RETRIAGE_DATA_DIR: {path} cannot be used: {why}",)) from error
    except (MalformedMarkerKeyError, UnicodeDecodeError) as error:
        raise SettingsError((f"RETRIAGE_DATA_DIR: {path} holds no marker key",)) from error


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
