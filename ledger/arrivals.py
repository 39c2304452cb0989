"""Arrivals: deliveries that are accepted in groups, one script and one round trip for each group.

For each the script does what ``ledger.deliveries`` does for one: a delivery and its jobs stand in
the queue together or not at all, and a redelivery, or one that means the same, makes no second job.
A crash of the server is before the group or after it: the AOF takes a script as one block.

What a delivery asks for depends on who the bot is. So the script compares the bot's user ids with
those under which the group was read, and does nothing where they differ: no read goes before it.

The queue's library writes one job (``JobPattern``); the jobs of a group are that one with their own
ids and data. So the form of a job stays the library's.
"""

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

import redis.asyncio

from ledger.codec import stamp, text
from ledger.deliveries import ASK_KEPT, KEPT, ask_key, delivery_keys
from ledger.due import KEY as DUE
from ledger.records import Due
from ledger.scripts import Script

Argument = str | int | bytes

_ACCEPT: Final = """
local given, pattern = cjson.decode(ARGV[1]), cjson.decode(ARGV[2])

-- Whether the bot's user ids are those that the group was read with.
local function same_bot(ids)
  local known = {}
  for _, id in ipairs(given.bot_ids) do known[id] = true end
  for _, id in ipairs(ids) do
    if not known[id] then return false end
  end
  return #ids == #given.bot_ids
end

-- The pattern's commands, once its places hold the id and the data of one job.
local function enqueue(id, data)
  for _, place in ipairs(pattern.id_places) do
    pattern.commands[place[1]][place[2]] = place[3] .. id .. place[4]
  end
  for _, place in ipairs(pattern.data_places) do pattern.commands[place[1]][place[2]] = data end
  for _, command in ipairs(pattern.commands) do redis.call(unpack(command)) end
end

local bot_ids = redis.call('SMEMBERS', 'bot:ids')
if not same_bot(bot_ids) then return bot_ids end

local answers, at = {}, 2
for _, one in ipairs(given.arrivals) do
  local is_new = #one.keys == 0 or redis.call('EXISTS', unpack(one.keys)) == 0
  for _, job in ipairs(one.jobs) do
    at = at + 1
    if is_new then
      redis.call('SET', job.ask_key, job.ask, 'EX', given.ask_kept)
      redis.call('ZADD', given.due_key, one.again_at, job.due)
      enqueue(job.id, ARGV[at])
    end
  end
  if is_new then
    for _, key in ipairs(one.keys) do redis.call('SET', key, given.token, 'EX', given.kept) end
  end
  answers[#answers + 1] = is_new and 'n' or 'k'
end
return table.concat(answers)
"""


class JobPattern:
    """One job as the queue's library writes it, for others that differ in id and data alone.

    ``commands``, each a name and its arguments; ``id`` is found in some arguments, and ``data`` is
    one. All the others are text or numbers. Raises ValueError where the data is none of them: then
    the library writes it in another form.
    """

    def __init__(self, commands: Sequence[Sequence[Argument]], id: str, data: bytes) -> None:
        ids: list[tuple[int, int, str, str]] = []
        datas: list[tuple[int, int]] = []
        for row, command in enumerate(commands, 1):  # as Lua counts
            for column, argument in enumerate(command, 1):
                if argument == data:
                    datas.append((row, column))
                elif isinstance(argument, str) and id in argument:
                    before, _, after = argument.partition(id)
                    ids.append((row, column, before, after))
        if not datas:
            raise ValueError("the queue's library writes the data of a job in another form")
        texts = [[_text(argument, data) for argument in command] for command in commands]
        self.json = json.dumps({"commands": texts, "id_places": ids, "data_places": datas})


@dataclass(frozen=True, slots=True)
class AskedJob:
    """One thing that a delivery asks for: ``due`` until it is done with, ``ask`` as JSON, and the
    id and data of the job that does it."""

    due: Due
    ask: str
    id: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Arrival:
    """One delivery, as it was read while the bot's user ids were ``bot_ids``.

    ``meaning`` as in ``Deliveries.accept``. Without jobs it is ignored, and leaves nothing. What is
    not done at ``again_at`` is enqueued again.
    """

    guid: str
    meaning: str
    bot_ids: frozenset[int]
    jobs: tuple[AskedJob, ...]
    again_at: datetime


class Standing(Enum):
    """What became of an arrival. MISREAD: nothing, for the bot's user ids are others."""

    NEW = "new"
    KNOWN = "known"
    MISREAD = "misread"


class Arrivals:
    """Accepts groups. ``bot_ids`` are the bot's user ids as they were last seen: at first none."""

    def __init__(self, redis: redis.asyncio.Redis) -> None:
        self._accept = Script(redis, _ACCEPT)
        self.bot_ids: frozenset[int] = frozenset()

    async def accept(self, group: Sequence[Arrival], pattern: JobPattern) -> list[Standing]:
        """Put the jobs of each into the queue, unless it was accepted before; in their order.

        Raises LedgerUnavailableError: all or none of them may have been accepted, and the same
        again tells by answering KNOWN.
        """
        bot_ids = self.bot_ids
        current = [arrival for arrival in group if arrival.bot_ids == bot_ids]
        found = await self._accept([], _arguments(current, pattern, bot_ids))
        if isinstance(found, list):
            self.bot_ids = frozenset(int(id_) for id_ in found)
            return [Standing.MISREAD] * len(group)
        answers = iter(text(found))
        return [_standing(arrival, bot_ids, answers) for arrival in group]


def _standing(arrival: Arrival, bot_ids: frozenset[int], answers: Iterator[str]) -> Standing:
    if arrival.bot_ids != bot_ids:
        return Standing.MISREAD
    return Standing.NEW if next(answers) == "n" else Standing.KNOWN


def _arguments(
    group: Sequence[Arrival], pattern: JobPattern, bot_ids: frozenset[int]
) -> list[str | bytes]:
    """What is text, as JSON; the pattern; the data of each job."""
    given = {
        "bot_ids": [str(id_) for id_ in bot_ids],
        "arrivals": [_described(arrival) for arrival in group],
        "token": uuid.uuid4().hex,
        "kept": str(round(KEPT.total_seconds())),
        "ask_kept": str(round(ASK_KEPT.total_seconds())),
        "due_key": DUE,
    }
    data = [job.data for arrival in group for job in arrival.jobs]
    return [json.dumps(given), pattern.json, *data]


def _described(arrival: Arrival) -> dict[str, object]:
    jobs = [
        {"id": job.id, "ask_key": ask_key(job.due), "ask": job.ask, "due": str(job.due)}
        for job in arrival.jobs
    ]
    return {
        "keys": delivery_keys(arrival.guid, arrival.meaning) if jobs else [],
        "again_at": str(stamp(arrival.again_at)),
        "jobs": jobs,
    }


def _text(argument: Argument, data: bytes) -> str:
    """As it travels in JSON; data, which need not be text, follows on its own."""
    if argument == data:
        return ""
    return text(argument) if isinstance(argument, (str, bytes)) else str(argument)
