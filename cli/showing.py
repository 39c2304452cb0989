"""``retriage show``: the contract of one run, from the ledger."""

import asyncio
import json
import sys
from typing import Any

import yaml

from cli.failures import Code, CommandError
from cli.options import did_you_mean
from cli.store import has_ledger, ledger_at, ledger_url, settings_to_look
from cli.terminal import SENTENCES, clean, cleaned
from ledger.ledger import Ledger
from ledger.records import Look
from triage.contract import RunRecord, Status, contract
from triage.identifiers import DedupeKey, MalformedKeyError

_KNOWN_KEYS = 500
"""Newest runs among which a mistyped key is looked for."""


def show_run(key: str, *, as_json: bool) -> int:
    """Print it as YAML, or as JSON."""
    settings = settings_to_look()
    if not has_ledger(settings):
        raise CommandError(
            f"no run {clean(key)!r}: there is no ledger in {settings.data_dir} yet, and REDIS_URL "
            "is not set"
        )
    with ledger_url(settings) as url:
        look = asyncio.run(_read(url, key))
    shown = contract_of(look)
    if as_json:
        sys.stdout.write(json.dumps(shown, indent=2) + "\n")
    else:
        sys.stdout.write(f"# {SENTENCES[Status(shown['status'])]}\n{as_yaml(shown)}")
    return Code.DONE


def contract_of(look: Look) -> dict[str, Any]:
    """The contract of a run that is there; a lease that was given back ended with its attempt."""
    run, lease = look.run, look.lease
    if run is None:
        raise LookupError("no run")
    last: Any = run.attempts[-1] if run.attempts else None
    return contract(
        run,
        lease_owner=lease.owner or (last.owner if last else ""),
        lease_until=lease.until or (last.until if last else None),
        fence=lease.fence or (last.fence if last else 0),
    )


def as_yaml(shown: dict[str, Any]) -> str:
    """In the order of the contract; what strangers wrote is cleaned."""
    return yaml.safe_dump(cleaned(shown), sort_keys=False, allow_unicode=True, width=120)


async def _read(url: str, key: str) -> Look:
    async with ledger_at(url) as ledger:
        try:
            look = await ledger.leases.view(str(DedupeKey.parse(key)))
        except MalformedKeyError as error:
            raise CommandError(f"{clean(str(error))}{await _closest(key, ledger)}") from error
        if look.run is None:
            raise CommandError(f"the ledger has no run {clean(key)}{await _closest(key, ledger)}")
        return look


async def _closest(key: str, ledger: Ledger) -> str:
    runs: list[RunRecord] = await ledger.runs.listed(limit=_KNOWN_KEYS)
    known = [run.inputs.dedupe_key for run in runs]
    return did_you_mean(key, known, most=2) or "; all of them: retriage runs"
