"""``retriage check``: is a policy file right, and what does it come to?"""

import json
import sys
from importlib.resources import files
from pathlib import Path

import yaml

from cli.failures import Code, CommandError
from cli.terminal import clean, stderr
from triage.policy import Policy, PolicyError, read_policy, schema
from worker.policy_file import load_policy_file


def check_policy(file: Path | None, *, schema: bool, example: bool) -> int:
    """Print what was asked for. 0, or 2 with each error on a line of its own."""
    if [file is not None, schema, example].count(True) != 1:
        raise CommandError("name one FILE to check, or ask for --schema or --example")
    if schema:
        sys.stdout.write(schema_text())
    elif file is None:
        sys.stdout.write(example_text())
    else:
        sys.stdout.write(effective(_checked(file)))
        stderr().print(f"✓ {clean(str(file))} is valid; with its defaults it says the above")
    return Code.DONE


def schema_text() -> str:
    """The JSON Schema of a policy file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def example_text() -> str:
    """An example file, with comments."""
    return files("cli").joinpath("example.retriage.yml").read_text(encoding="utf-8")


def effective(policy: Policy) -> str:
    """Every setting of the file's jobs, defaults included."""
    whole = policy.model_dump(mode="json", by_alias=True)
    jobs = {name: settings for name, settings in whole["jobs"].items() if settings is not None}
    return yaml.safe_dump({"jobs": jobs}, sort_keys=False, allow_unicode=True)


def _checked(file: Path) -> Policy:
    try:
        return read_policy(load_policy_file(file))
    except PolicyError as error:
        raise CommandError(*policy_lines(str(file), error)) from error


def policy_lines(name: str, error: PolicyError) -> list[str]:
    """``FILE:LINE: path: what is wrong``, for each problem, as editors and people find it."""
    lines = []
    for problem in error.problems:
        where = f"{name}:{problem.line}" if problem.line else name
        said = f"{problem.path}: {problem.message}" if problem.path else problem.message
        lines.append(clean(f"{where}: {said}"))
    return lines
