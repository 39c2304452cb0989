"""How an effect goes to a script, how it stands in its run, and what it means for all runs.

In a run it is the field ``e:{effect_key}``: its place, a blank, then JSON that ends with when and
how often it was sent. Scripts write that end by themselves: the other fields are not theirs, and a
Lua table cannot tell an empty list from an empty object. While its claim is open, the field
``c:{effect_key}`` holds the claim's fence.

In ``effect:{effect_key}`` each fact is a field; labels are the fields ``own:{label}`` and
``removed:{label}``. ``github:{repository id}`` leads from a GitHub id to the effect.
"""

import json
from collections.abc import Mapping, Sequence

from ledger.codec import parsed, stamp
from triage.contract import RunEffect
from triage.identifiers import FAMILY, DedupeKey, EffectKind, effect_key

EVIDENCE = """
-- Place, raw value, first send and number of sends of an effect in its run.
local function stored(run_key, key)
  local raw = redis.call('HGET', run_key, 'e:' .. key)
  if not raw then return nil, '', 'null', 0 end
  local sent_at, sends = string.match(raw, '"sent_at":(%w+),"sends":(%d+)}$')
  return string.match(raw, '^%d+'), raw, sent_at, tonumber(sends)
end

local function put(run_key, place, fact)
  place = place or redis.call('HINCRBY', run_key, 'places', 1)
  local raw = string.format('%s %s,"sent_at":%s,"sends":%d}',
    place, string.sub(fact.body, 1, -2), fact.sent_at, fact.sends)
  redis.call('HSET', run_key, 'e:' .. fact.key, raw)
  return raw
end

-- Of two ids the lower wins, whoever saw it.
local function note_seen(key, old, fact)
  if fact.id == '' then return end
  local known = tonumber(old.github_id)
  if not known or tonumber(fact.id) < known then
    redis.call('HSET', key, 'github_id', fact.id, 'url', fact.url)
  elseif tonumber(fact.id) == known and fact.url ~= '' then
    redis.call('HSET', key, 'url', fact.url)
  end
  local repository = fact.repository_id or old.repository_id
  if repository then redis.call('HSET', 'github:' .. repository, fact.id, fact.key) end
end

local function close_claim(run_key, key)
  redis.call('HDEL', run_key, 'c:' .. key)
  redis.call('HDEL', 'effect:' .. key, 'claim', 'claimed_raw', 'undo_raw', 'undo_holding',
    'undo_samples', 'undo_pending', 'undo_tombstone', 'undo_removed')
end

local function note_labels(key, old, fact)
  for _, label in ipairs(fact.labels) do
    if fact.kind == 'unlabel' then
      redis.call('HDEL', 'effect:' .. fact.labels_key, 'own:' .. label)
    elseif fact.kind == 'labels' and not old['removed:' .. label] then
      redis.call('HSET', key, 'own:' .. label, '1')
    end
  end
end

-- What a run's evidence means for the record that all runs share.
local function share(run_key, dedupe_key, fact)
  local key = 'effect:' .. fact.key
  local old = hash(key)
  local mine = old.holder == dedupe_key
  redis.call('HSET', key,
    'repository_id', fact.repository_id, 'issue_id', fact.issue_id, 'kind', fact.kind)
  if fact.issue ~= '0' then redis.call('HSET', key, 'issue', fact.issue) end
  note_seen(key, old, fact)
  local in_doubt = fact.evidence == 'unsettled' and fact.open
  if in_doubt or fact.evidence == 'conflict' then
    if mine or not old.holder then
      local holding = fact.evidence == 'conflict' and 'review' or 'unsettled'
      redis.call('HSET', key, 'holder', dedupe_key, 'holding', holding)
    end
    -- A doubt may still be ended by whoever sent it; what a person must decide may not.
    if mine and not in_doubt then close_claim(run_key, fact.key) end
    return
  end
  if mine then
    redis.call('HDEL', key, 'holder', 'holding')
    close_claim(run_key, fact.key)
  end
  if fact.reason == 'resolved' then redis.call('HSET', key, 'pending', '0', 'samples', '') end
  -- Acknowledged by GitHub, or seen there.
  if fact.evidence ~= 'confirmed' and fact.evidence ~= 'unsettled' then return end
  redis.call('HSET', key, 'pending', '0')
  if fact.digest ~= '' then redis.call('HSET', key, 'digest', fact.digest) end
  if fact.sends == 0 then return end
  local fence = tonumber(redis.call('HGET', run_key, 'snapshot_fence')) or 0
  if fence >= (tonumber(old.writer_fence) or 0) then
    redis.call('HSET', key, 'writer', dedupe_key, 'writer_fence', fence)
  end
  note_labels(key, old, fact)
end
"""


def fact(effect: RunEffect, dedupe_key: str) -> dict[str, object]:
    """An effect as the scripts take it, in JSON. Numbers that Lua only passes on are text."""
    run = DedupeKey.parse(dedupe_key)
    labels_key = effect_key(run.repository_id, effect.issue_id, FAMILY[run.job], EffectKind.LABELS)
    return {
        "key": effect.effect_key,
        "body": effect.model_dump_json(exclude={"sent_at", "sends"}),
        "evidence": effect.evidence,
        "open": effect.open,
        "reason": effect.reason,
        "id": "" if effect.github_id is None else str(effect.github_id),
        "url": effect.url,
        "digest": effect.digest,
        "kind": effect.kind,
        "creates": effect.kind.creates and effect.github_id is None,
        "issue": str(effect.issue),
        "issue_id": str(effect.issue_id),
        "repository_id": str(run.repository_id),
        "sends": effect.sends,
        "sent_at": "null" if effect.sent_at is None else str(stamp(effect.sent_at)),
        "labels": list(effect.labels),
        "labels_key": labels_key,
    }


def facts(effects: Sequence[RunEffect], dedupe_key: str) -> str:
    """Several, in one JSON array."""
    return json.dumps([fact(effect, dedupe_key) for effect in effects])


def effects_of(fields: Mapping[str, str]) -> tuple[RunEffect, ...]:
    """The effects of a run's hash, in the order in which they were first saved."""
    placed = [value.split(" ", 1) for name, value in fields.items() if name.startswith("e:")]
    placed.sort(key=lambda item: int(item[0]))
    return tuple(parsed(RunEffect, body) for _, body in placed)
