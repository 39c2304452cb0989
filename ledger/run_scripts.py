"""The scripts that write runs. ``ledger.runs`` calls them.

KEYS are the lease and the run; ARGV begins with the lease's token, fence and epoch.
"""

from ledger.evidence import EVIDENCE
from ledger.reviews import PROMOTE

WRITE_ONCE = """
if not remaining(KEYS[1], ARGV[1], ARGV[2], ARGV[3]) then return {'lease-lost'} end
redis.call('SET', KEYS[2], ARGV[4], 'NX')
return {'ok', redis.call('GET', KEYS[2])}
"""

# KEYS: 2 the plan, then those of PROMOTE where there is something to remember. ARGV: 4 the plan, 5
# what is to be remembered, as JSON, or nothing; 6 the review, 7 its recall. The plan is written
# first: a server without memory left refuses that, and changes nothing.
SAVE_PLAN = (
    PROMOTE
    + """
if not remaining(KEYS[1], ARGV[1], ARGV[2], ARGV[3]) then return {'lease-lost'} end
local stands = redis.call('GET', KEYS[2])
if stands then return {'ok', stands} end
local memory = ARGV[5] ~= '' and cjson.decode(ARGV[5])
local why = memory and why_not(memory)
if why then return {why} end
redis.call('SET', KEYS[2], ARGV[4])
if memory then promote(memory, ARGV[6], ARGV[7]) end
return {'ok', ARGV[4]}
"""
)

SAVE_EFFECTS = (
    EVIDENCE
    + """
if not remaining(KEYS[1], ARGV[1], ARGV[2], ARGV[3]) then return 'lease-lost' end
local status = redis.call('HGET', KEYS[2], 'status')
if not status then return 'unknown-run' end
if is_final(status) then return 'frozen' end
for _, fact in ipairs(cjson.decode(ARGV[5])) do
  local place, _, sent_at, sends = stored(KEYS[2], fact.key)
  -- What was sent stays sent, whatever an older copy says, until a person decides.
  if fact.reason ~= 'resolved' then
    if sends > fact.sends then fact.sends = sends end
    if sent_at ~= 'null' then fact.sent_at = sent_at end
  end
  put(KEYS[2], place, fact)
  share(KEYS[2], ARGV[4], fact)
end
return 'ok'
"""
)

# ARGV: 4 what is saved, as JSON; 5 the record. Of a run that is over, 6 the snapshot without its
# bodies, or nothing; 7 the sealed run, 8 the digest of the evidence in it.
SAVE = """
local run, now = cjson.decode(ARGV[4]), now_ms()

local function indexes(status)
  local all, own = 'runs::', 'runs:' .. run.repository .. ':'
  return {all .. status, own .. status}
end

local function index(old)
  if not old then
    for _, key in ipairs(indexes('')) do redis.call('ZADD', key, run.created, run.key) end
    redis.call('ZADD', run.window, run.created, run.key)
  end
  if old == run.status then return end
  if old then
    for _, key in ipairs(indexes(old)) do redis.call('ZREM', key, run.key) end
  end
  for _, key in ipairs(indexes(run.status)) do redis.call('ZADD', key, run.created, run.key) end
end

local function count_cost()
  for name, spent in pairs(run.cost) do
    local before = tonumber(redis.call('HGET', KEYS[2], 'cost:' .. name)) or 0
    if spent ~= before then
      redis.call('HINCRBYFLOAT', 'counters', 'cost:' .. name, spent - before)
      redis.call('HSET', KEYS[2], 'cost:' .. name, spent)
    end
  end
end

local function count_denials()
  local before = tonumber(redis.call('HGET', KEYS[2], 'denials')) or 0
  if run.denials ~= before then
    redis.call('HINCRBY', 'counters', 'denials', run.denials - before)
    redis.call('HSET', KEYS[2], 'denials', run.denials)
  end
end

-- An answer that was not continuous counts once, whatever becomes of its run.
local function count_link()
  if run.broken and redis.call('HSETNX', KEYS[2], 'broken', '1') == 1 then
    redis.call('HINCRBY', 'counters', 'links:broken', 1)
  end
end

-- A run that is over: it expires, and the indexes forget it then.
local function finish()
  for _, key in ipairs({KEYS[2], KEYS[3], KEYS[4]}) do
    redis.call('PEXPIRE', key, run.retention)
  end
  local everywhere = {run.window}
  for _, status in ipairs({'', run.status}) do
    for _, key in ipairs(indexes(status)) do table.insert(everywhere, key) end
  end
  redis.call('ZADD', 'runs:expiring', now + run.retention, cjson.encode({run.key, everywhere}))
  if run.completes ~= '' then
    redis.call('HSET', 'completed', run.completes, string.format('%.0f %s', now, run.full_name))
    if run.recall ~= '' then
      redis.call('HSET', 'recalled', run.completes, run.recall .. ' ' .. run.full_name)
    end
  end
  for _, evidence in ipairs({'confirmed', 'skipped', 'absent', 'unsettled', 'conflict'}) do
    local count = count_effects(KEYS[2], '"evidence":"' .. evidence .. '"')
    redis.call('HINCRBY', 'counters', 'effects:' .. evidence, count)
  end
end

-- What all runs know of an effect, written anew without what says nothing now: a hash that has or
-- once had a long field takes twice the room. A long address of a comment is in the run alone then.
local function shrink(key)
  local fields, kept = hash(key), {}
  if fields.holder or not fields.kind then return end
  local silent = {pending = '0', tombstone = '0', samples = '', intended = fields.intended}
  if fields.kind == 'comment' and #(fields.url or '') > 64 then silent.url = fields.url end
  for name, value in pairs(fields) do
    if silent[name] ~= value then
      table.insert(kept, name)
      table.insert(kept, value)
    end
  end
  redis.call('DEL', key)
  redis.call('HSET', key, unpack(kept))
end

-- The evidence is frozen: all of the run becomes one value, if nothing was written since it was
-- made.
local function seal()
  if not is_final(run.status) then return end
  local fields, names = hash(KEYS[2]), {}
  for name in pairs(fields) do
    if string.sub(name, 1, 2) == 'e:' then table.insert(names, name) end
  end
  table.sort(names)
  local whole = {}
  for at, name in ipairs(names) do whole[at] = name .. fields[name] end
  if redis.sha1hex(table.concat(whole)) ~= ARGV[8] then return end
  redis.call('HSET', KEYS[2], 'record', ARGV[7])
  for _, name in ipairs(names) do
    redis.call('HDEL', KEYS[2], name)
    shrink('effect:' .. string.sub(name, 3))
  end
end

-- Whether the caller read a run that was sealed since: the evidence stands in the sealed record
-- alone, and the caller's lacks it.
local function is_read_before_seal()
  local record = redis.call('HGET', KEYS[2], 'record') or '{'
  return string.sub(record, 1, 1) ~= '{' and ARGV[8] ~= redis.sha1hex('')
end

local function forget_expired()
  local over = redis.call('ZRANGEBYSCORE', 'runs:expiring', '-inf', now, 'LIMIT', 0, 10)
  for _, trace in ipairs(over) do
    local key, everywhere = unpack(cjson.decode(trace))
    for _, name in ipairs(everywhere) do redis.call('ZREM', name, key) end
    redis.call('DEL', 'lease:' .. key)
    redis.call('ZREM', 'runs:expiring', trace)
  end
end

-- What an end freezes has to be here. A server that was set back, or a replica that took its place,
-- may have the lease and lack the evidence: whoever settles there has lost its run.
local function is_whole()
  local settled = count_effects(KEYS[2], '"evidence":"confirmed"', '"evidence":"skipped"')
  return settled >= run.effects
end

if run.ending and redis.call('HGET', KEYS[2], 'settled') == ARGV[1] then return 'ok' end
if not remaining(KEYS[1], ARGV[1], ARGV[2], ARGV[3]) then return 'lease-lost' end
local old = redis.call('HGET', KEYS[2], 'status')
if old and is_final(old) and old ~= run.status then return 'frozen' end
if is_final(run.status) and old ~= run.status and not is_whole() then return 'lease-lost' end

if not is_read_before_seal() then redis.call('HSET', KEYS[2], 'record', ARGV[5]) end
redis.call('HSET', KEYS[2], 'status', run.status, 'force', run.force and '1' or '0')
index(old)
count_cost()
count_denials()
count_link()
if is_final(run.status) and old ~= run.status then
  if ARGV[6] ~= '' then redis.call('SET', KEYS[3], ARGV[6]) end
  finish()
end
if not run.ending then
  seal()
  return 'ok'
end

local unsettled = count_effects(KEYS[2], '"open":true', '"evidence":"unsettled"')
redis.call('HSET', KEYS[2], 'settled', ARGV[1], 'claimed', unsettled)
redis.call('HINCRBY', 'counters', 'runs:' .. run.status, 1)
redis.call('ZREM', 'window:due', 'continue ' .. run.key)
for _, due in ipairs(run.due) do redis.call('ZADD', 'window:due', due[2], due[1]) end
seal()
let_go(KEYS[1], KEYS[2])
forget_expired()
return 'ok'
"""
