"""The settings of a process, read from the environment.

Every problem is one clear line that names the variable and never shows its value.
"""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from worker.settings.checks import Process, faults, lacks
from worker.settings.problems import SettingsError
from worker.settings.values import Settings

__all__ = ["Process", "Settings", "SettingsError", "read_settings"]


def read_settings(process: Process, *, env_file: Path | None = None, **given: Any) -> Settings:
    """Read the environment, over ``env_file`` where there is one; ``given`` wins over both.

    Raises SettingsError with a line for every problem, whatever the process lacks included.
    """
    try:
        settings = Settings(_env_file=env_file, **given)
    except ValidationError as error:
        items = error.errors(include_input=False, include_url=False)
        raise SettingsError(tuple(_line(item) for item in items)) from None
    problems = (*faults(settings), *lacks(settings, process))
    if problems:
        raise SettingsError(problems)
    return settings


def _line(item: Any) -> str:
    message = str(item["msg"])
    return f"{str(item['loc'][0]).upper()}: {message[0].lower()}{message[1:]}"
