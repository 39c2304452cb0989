"""The guards of the promise, and how each is switched off in a copy of the program.

An edit names a file, a text that stands in it exactly once, and what stands there instead. A guard
of the ledger stands twice, in its script and in the ledger of the simulations: both are switched
off, each is hunted where it can show.
"""

from dataclasses import dataclass
from typing import Final

MEMORY: Final = "tests/simulation/memory"


@dataclass(frozen=True, slots=True)
class Edit:
    """One text for another."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Guard:
    """A guard: which invariant falls without it, and the edits that switch it off.

    ``edits`` are of the program and of the simulations' ledger; ``script`` those of the real
    ledger's scripts. ``stories``: the tests that are told of it first; of tests/simulation where no
    folder is named.
    """

    name: str
    invariant: str
    edits: tuple[Edit, ...]
    script: tuple[Edit, ...] = ()
    stories: tuple[str, ...] = ()


GUARDS: Final = (
    Guard(
        "claim",
        "I1",
        (
            Edit(f"{MEMORY}/effects.py", "if old.holder and not mine:", "if False:"),
            Edit("worker/stages/writing.py", "if others and effect", "if False and effect"),
        ),
        (
            Edit(
                "ledger/effect_scripts.py",
                "if old.holder and not mine then return {'blocked'} end",
                "",
            ),
        ),
        ("test_windows.py", "test_commands.py"),
    ),
    Guard(
        "fence before a write",
        "I6",
        (
            Edit(
                f"{MEMORY}/evidence.py",
                "if row.token != lease.token or row.fence != lease.fence or left <= 0:",
                "if False:",
            ),
        ),
        (
            Edit(
                "ledger/scripts.py",
                "if lease.token ~= token or lease.fence ~= fence or left <= 0 "
                "then return nil, 'lease-lost' end",
                "",
            ),
        ),
    ),
    Guard(
        "deadline before a write",
        "I1",
        (
            Edit(
                "worker/github/writer.py",
                "if self._clock.monotonic() >= claim.deadline:",
                "if False:",
            ),
        ),
        (),
        ("test_late_writers.py",),
    ),
    Guard(
        "lock delay",
        "I1",
        (
            Edit(
                f"{MEMORY}/leases.py",
                "if claimed > 0 and now < ends + self._lock_delay:",
                "if False:",
            ),
            Edit(
                "triage/admission.py",
                "return cell if at.now >= free_at else",
                "return cell if True else",
            ),
        ),
        (
            Edit(
                "ledger/lease.py",
                "if claimed > 0 and now < ends + lock_delay then return nil end",
                "",
            ),
        ),
    ),
    Guard(
        "late verify",
        "I1",
        (
            Edit(
                "worker/stages/sending.py",
                "await attempt.ports.ledger.due.add(Due(DueKind.VERIFY, effect.effect_key), at)",
                "del at",
            ),
        ),
        (),
        ("test_late_writers.py",),
    ),
    Guard(
        "superseded check",
        "P",
        (
            Edit(
                f"{MEMORY}/effects.py",
                "if (old.writer_fence or 0) > snapshot_fence:",
                "if False:",
            ),
        ),
        (
            Edit(
                "ledger/effect_scripts.py",
                "if (tonumber(old.writer_fence) or 0) > snapshot_fence "
                "then return {'superseded'} end",
                "",
            ),
        ),
        ("test_windows.py", "test_commands.py"),
    ),
    Guard(
        "read-back before a re-send",
        "I1",
        (
            Edit(
                "triage/admission.py",
                'return then if at.seen else Refuse("a proof is pending", run.proof_until)',
                "return then",
            ),
            Edit(
                "worker/stages/reading.py",
                "        case Pending():\n            return effect\n",
                "        case Pending():\n"
                "            return effect.model_copy(update={\n"
                '                "evidence": Evidence.ABSENT, "open": False})\n',
            ),
            Edit(
                f"{MEMORY}/effects.py",
                "if old.pending and not self._proved_absent(old.samples or ()):",
                "if False:",
            ),
        ),
        (
            Edit(
                "ledger/effect_scripts.py",
                "if old.pending == '1' and not proved_absent(old.samples) "
                "then return {'unproved'} end",
                "",
            ),
        ),
    ),
    Guard(
        "five reads",
        "I1",
        (Edit("triage/readback.py", "SAMPLES = 5", "SAMPLES = 2"),),
        (),
        ("test_views.py", "test_proof.py"),
    ),
    Guard(
        "two views",
        "I1",
        (
            Edit(
                "worker/stages/sampling.py",
                "(*comments, *recent_comments)",
                "(*comments,)",
            ),
            Edit("worker/stages/sampling.py", "(*own, *recent)", "(*own,)"),
        ),
        (),
        ("test_views.py", "test_proof.py"),
    ),
    Guard(
        "comment before label",
        "I3",
        (
            Edit(
                "triage/effects.py",
                "    effects.append(effect(EffectKind.LABELS, labels=decision.labels))\n"
                "    return effects",
                "    effects.append(effect(EffectKind.LABELS, labels=decision.labels))\n"
                "    return effects[::-1]",
            ),
        ),
    ),
    Guard(
        "author check",
        "I1",
        (Edit("triage/readback.py", "if item.author_id in bot_ids)", "if item.author_id)"),),
        (),
        ("test_markers.py",),
    ),
    Guard(
        "signature check",
        "I1",
        (
            Edit(
                "triage/marker.py",
                'if key is None or not hmac.compare_digest(_sign(key, marker), found["sig"]):',
                "if False:",
            ),
        ),
        (),
        ("test_markers.py", "test_lost_ledger.py"),
    ),
    Guard(
        "no retry on writes",
        "I2",
        (
            Edit(
                "worker/github/writer.py",
                "        except NoAnswer as error:\n            return Unknown(str(error))\n",
                "        except NoAnswer:\n"
                "            answer = await self._send_once(\n"
                "                path, deed.method, authorization, deed.content)\n",
            ),
        ),
    ),
    Guard(
        "no redirect on writes",
        "I5",
        (
            Edit(
                "worker/github/connection.py",
                "follow_redirects=False,",
                "follow_redirects=True,",
            ),
        ),
        (),
        ("tests/worker/test_github_writer.py",),
    ),
    Guard(
        "label exists now",
        "I5",
        (
            Edit(
                "triage/effects.py",
                "sendable = tuple(name for name in missing if name in repository_labels)",
                "sendable = tuple(missing)",
            ),
        ),
        (),
        ("test_people_win.py", "test_refusals.py"),
    ),
    Guard(
        "tombstone",
        "P",
        (
            Edit(
                f"{MEMORY}/effects.py",
                "if not run.force and (old.tombstone or _removed(old, effect)):",
                "if False:",
            ),
            Edit(
                "triage/effects.py",
                "gone = record is not None and record.tombstone and not inputs.force",
                "gone = False",
            ),
        ),
        (
            Edit(
                "ledger/effect_scripts.py",
                "if force ~= '1' and (old.tombstone == '1' or #unwanted > 0) "
                "then return {'tombstone'} end",
                "",
            ),
        ),
        ("test_people_win.py",),
    ),
    Guard(
        "plan freeze",
        "I1",
        (
            Edit(
                "worker/stages/intake.py",
                "    if plan is None:\n        made = await craft.ask",
                "    if True:\n        made = await craft.ask",
            ),
        ),
        (
            Edit(
                "ledger/run_scripts.py",
                "redis.call('SET', KEYS[2], ARGV[4], 'NX')",
                "redis.call('SET', KEYS[2], ARGV[4])",
            ),
            Edit("ledger/run_scripts.py", "if stands then return {'ok', stands} end\n", ""),
        ),
    ),
    Guard(
        "epoch",
        "I1",
        (
            Edit(
                f"{MEMORY}/effects.py",
                "if epoch is None or epoch.replid != server.replid:",
                "if epoch is None:",
            ),
            Edit(f"{MEMORY}/effects.py", "if now < epoch.quiet_until:", "if False:"),
            Edit("worker/pipeline.py", "if quiet is not None and inputs", "if False and inputs"),
        ),
        (
            Edit(
                "ledger/effect_scripts.py",
                "if stands.replid ~= replid then return {'epoch'} end",
                "",
            ),
        ),
        ("test_lost_ledger.py",),
    ),
    Guard(
        "pacing per installation",
        "P",
        (
            Edit(
                f"{MEMORY}/budgets.py",
                "        if free_at > now:\n",
                "        if False:\n",
            ),
        ),
        (
            Edit(
                "ledger/budget.py",
                "if free_at > now then return string.format('%.0f', free_at - now) end",
                "",
            ),
        ),
        ("test_refusals.py",),
    ),
    Guard(
        "delivery deduplication",
        "P",
        (
            Edit(
                f"{MEMORY}/deliveries.py",
                "        if known:\n            return False\n",
                "        del known\n",
            ),
        ),
        (
            Edit(
                "ledger/arrivals.py",
                "local is_new = #one.keys == 0 or redis.call('EXISTS', unpack(one.keys)) == 0",
                "local is_new = true",
            ),
        ),
    ),
)
"""All of them."""


def missing(root_of: "dict[str, str]") -> list[str]:
    """The edits whose text does not stand exactly once in its file (path to text)."""
    return [
        f"{guard.name}: {edit.path}: {edit.old[:60]!r}"
        for guard in GUARDS
        for edit in (*guard.edits, *guard.script)
        if root_of[edit.path].count(edit.old) != 1
    ]
