"""``python -m tests.bench [--quick] [PART…]``: measure, and print one JSON object.

Without a part, all of them. Progress goes to standard error.

Exit codes: 0 all were measured; 1 one could not be, and its ``"error"`` says why; 2 the usage.
"""

import argparse
import importlib
import importlib.util
import json
import os
import platform
import sys
import time
from typing import Final

from tests.bench import Options, UnmeasuredError

PARTS: Final = (
    "receiver",
    "tick",
    "ledger",
    "requests",
    "model_bytes",
    "workers",
    "recovery",
    "limits",
    "start",
)
"""Each is a module beside this one, in the order in which they are measured."""


def main(arguments: list[str]) -> int:
    """Measure the parts that are asked for; the exit code."""
    given = _read(arguments)
    unknown = [part for part in given.parts if part not in PARTS or not _stands(part)]
    if unknown:
        known = ", ".join(filter(_stands, PARTS))
        sys.stderr.write(f"bench: no part {', '.join(unknown)}; there are {known}\n")
        return 2
    parts = given.parts or list(filter(_stands, PARTS))
    options = Options(quick=given.quick)
    measured = {part: _measure(part, options) for part in parts}
    machine: dict[str, object] = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "quick": options.quick,
    }
    print(json.dumps({"machine": machine, **measured}, indent=2))  # noqa: T201 - the result
    return 1 if any("error" in figures for figures in measured.values()) else 0


def _read(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="script/bench")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="small counts: does it work at all?")
    return parser.parse_args(arguments)


def _stands(part: str) -> bool:
    return importlib.util.find_spec(f"tests.bench.{part}") is not None


def _measure(part: str, options: Options) -> dict[str, object]:
    sys.stderr.write(f"bench: {part}\n")
    began = time.monotonic()
    try:
        figures: dict[str, object] = importlib.import_module(f"tests.bench.{part}").measure(options)
    except UnmeasuredError as error:
        figures = {"error": str(error)}
    sys.stderr.write(f"bench: {part} took {time.monotonic() - began:.1f} s\n")
    return figures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
