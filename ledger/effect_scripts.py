"""The scripts that claim effects and record what became of them. ``ledger.effects`` calls them."""

from ledger.evidence import EVIDENCE
from triage.readback import SAMPLES

# KEYS: the lease, the run, the effect. Each test refuses by a word of Unclaimed; what follows the
# last one is the claim. A server that was restarted or replaced has another replication identity
# than the epoch was set under: its record may lack writes that were acknowledged.
CLAIM = (
    EVIDENCE
    + f"local SAMPLES = {SAMPLES}\n"
    + """
local token, fence, epoch, dedupe_key, fact, snapshot_fence, resend, operation, need, window
  = unpack(ARGV)
local now = now_ms()
fact, snapshot_fence, resend = cjson.decode(fact), tonumber(snapshot_fence), resend == '1'

local function proved_absent(samples)
  local first, last, count = nil, nil, 0
  for sample in string.gmatch(samples or '', '%d+') do
    first, last, count = first or tonumber(sample), tonumber(sample), count + 1
  end
  return count >= SAMPLES and last - first >= tonumber(window)
end

local function removed(old)
  local labels = {}
  if fact.kind ~= 'labels' then return labels end
  for _, label in ipairs(fact.labels) do
    if old['removed:' .. label] then table.insert(labels, label) end
  end
  return labels
end

local left, why = remaining(KEYS[1], token, fence, epoch)
if not left then return {why} end
local stands = hash('epoch')
local replid = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
if stands.replid ~= replid then return {'epoch'} end
if now < (tonumber(stands.quiet_until) or 0) then return {'quiet'} end
if left <= tonumber(need) then return {'lease-too-short'} end
local status, force = unpack(redis.call('HMGET', KEYS[2], 'status', 'force'))
if not status then return {'unknown-run'} end
if is_final(status) then return {'frozen'} end

local old = hash(KEYS[3])
local mine = old.holder == dedupe_key
local place, raw, sent_at, sends = stored(KEYS[2], fact.key)
if mine and old.claim == operation then return {'claimed', raw} end
if old.withdrawn == operation then return {'unsure'} end
if old.holder and not mine then return {'blocked'} end
if (tonumber(old.writer_fence) or 0) > snapshot_fence then return {'superseded'} end
local unwanted = removed(old)
if force ~= '1' and (old.tombstone == '1' or #unwanted > 0) then return {'tombstone'} end
if mine and not resend then return {'unproved'} end
if fact.creates then
  -- It is there already, or an earlier request may still make it appear.
  if old.github_id then return {'unproved'} end
  if old.pending == '1' and not proved_absent(old.samples) then return {'unproved'} end
end

fact.sends = sends + 1
fact.sent_at = sent_at == 'null' and string.format('%.0f', now) or sent_at
local sending = put(KEYS[2], place, fact)
redis.call('HINCRBY', KEYS[2], 'claimed', 1)
redis.call('HSET', KEYS[2], 'snapshot_fence', snapshot_fence, 'c:' .. fact.key, fence)
redis.call('HSET', KEYS[3],
  'repository_id', fact.repository_id, 'issue_id', fact.issue_id, 'kind', fact.kind,
  'holder', dedupe_key, 'holding', 'claimed', 'claim', operation, 'claim_fence', fence,
  'claimed_at', string.format('%.0f', now), 'claimed_raw', sending, 'intended', fact.digest,
  'sends', (tonumber(old.sends) or 0) + 1, 'samples', '', 'tombstone', '0',
  'pending', fact.creates and '1' or old.pending or '0',
  'undo_raw', raw, 'undo_holding', mine and old.holding or '', 'undo_samples', old.samples or '',
  'undo_pending', old.pending or '0', 'undo_tombstone', old.tombstone or '0',
  'undo_removed', #unwanted > 0 and cjson.encode(unwanted) or '')
if fact.issue ~= '0' then redis.call('HSET', KEYS[3], 'issue', fact.issue) end
for _, label in ipairs(unwanted) do redis.call('HDEL', KEYS[3], 'removed:' .. label) end
return {'claimed', sending}
"""
)

# KEYS: the run, the effect. ARGV: operation, dedupe key, the effect's fact.
ACKNOWLEDGE = (
    EVIDENCE
    + """
local operation, dedupe_key, fact = ARGV[1], ARGV[2], cjson.decode(ARGV[3])
local old = hash(KEYS[2])
if old.claim ~= operation then
  -- A successor settled it meanwhile; an id that GitHub gave is true all the same.
  note_seen(KEYS[2], old, fact)
  return 'closed'
end
local status = redis.call('HGET', KEYS[1], 'status')
if not status or is_final(status) then
  note_seen(KEYS[2], old, fact)
  redis.call('HDEL', KEYS[2], 'holder', 'holding')
  close_claim(KEYS[1], fact.key)
  return 'frozen'
end
local place, _, _, sends = stored(KEYS[1], fact.key)
put(KEYS[1], place, fact)
-- A request that was refused is no send: the caller counts it back.
redis.call('HINCRBY', KEYS[2], 'sends', fact.sends - sends)
share(KEYS[1], dedupe_key, fact)
close_claim(KEYS[1], fact.key)
if not (fact.evidence == 'unsettled' and fact.open) then
  redis.call('HSET', KEYS[2], 'pending', '0')
end
return 'ok'
"""
)

# KEYS: the run, the effect. ARGV: operation, effect key.
WITHDRAW = (
    EVIDENCE
    + """
local old = hash(KEYS[2])
if old.claim ~= ARGV[1] then
  -- Its script may still be on its way.
  redis.call('HSET', KEYS[2], 'withdrawn', ARGV[1])
  return 0
end
local field = 'e:' .. ARGV[2]
-- Where a successor wrote evidence meanwhile, that stands.
if redis.call('HGET', KEYS[1], field) == old.claimed_raw then
  if old.undo_raw == '' then
    redis.call('HDEL', KEYS[1], field)
  else
    redis.call('HSET', KEYS[1], field, old.undo_raw)
  end
  if (tonumber(redis.call('HGET', KEYS[1], 'claimed')) or 0) > 0 then
    redis.call('HINCRBY', KEYS[1], 'claimed', -1)
  end
end
redis.call('HINCRBY', KEYS[2], 'sends', -1)
redis.call('HSET', KEYS[2], 'samples', old.undo_samples, 'pending', old.undo_pending,
  'tombstone', old.undo_tombstone)
if old.undo_holding == '' then
  redis.call('HDEL', KEYS[2], 'holder', 'holding')
else
  redis.call('HSET', KEYS[2], 'holding', old.undo_holding)
end
if old.undo_removed ~= '' then
  for _, label in ipairs(cjson.decode(old.undo_removed)) do
    redis.call('HSET', KEYS[2], 'removed:' .. label, '1')
  end
end
close_claim(KEYS[1], ARGV[2])
return 1
"""
)

# KEYS: the effect. ARGV: the time of an empty read. Gives all of them, in order.
ADD_SAMPLE = """
local samples = {}
for sample in string.gmatch(redis.call('HGET', KEYS[1], 'samples') or '', '%d+') do
  if sample == ARGV[1] then return redis.call('HGET', KEYS[1], 'samples') end
  table.insert(samples, tonumber(sample))
end
table.insert(samples, tonumber(ARGV[1]))
table.sort(samples)
for at, sample in ipairs(samples) do samples[at] = string.format('%.0f', sample) end
local text = table.concat(samples, ' ')
redis.call('HSET', KEYS[1], 'samples', text)
return text
"""

# KEYS: the effect. ARGV: effect key, id, address, digest, number of the issue.
NOTE_HIT = (
    EVIDENCE
    + """
local old = hash(KEYS[1])
note_seen(KEYS[1], old, {key = ARGV[1], id = ARGV[2], url = ARGV[3]})
if redis.call('HGET', KEYS[1], 'github_id') == ARGV[2] then
  if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'digest', ARGV[4]) end
  if ARGV[5] ~= '0' then redis.call('HSET', KEYS[1], 'issue', ARGV[5]) end
end
return 1
"""
)

# KEYS: the effect. ARGV: effect key, the epoch if it was looked up, then field and value in turn.
ADOPT = """
for at = 3, #ARGV, 2 do redis.call('HSETNX', KEYS[1], ARGV[at], ARGV[at + 1]) end
if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], 'looked_up', ARGV[2]) end
local id, repository = unpack(redis.call('HMGET', KEYS[1], 'github_id', 'repository_id'))
if id and repository then redis.call('HSET', 'github:' .. repository, id, ARGV[1]) end
return 1
"""
