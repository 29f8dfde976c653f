-- key_of --
-- Who uses a key: effects and outbox messages share one namespace, in the whole store.
SELECT r.run_id, f.seq, f.ended, f.state, ''
FROM effects AS f JOIN runs AS r ON r.id = f.run WHERE f.key = :key
UNION ALL
SELECT r.run_id, o.id & 4294967295, 0, o.state,
  'the message that event ' || (o.id & 4294967295) || ' queued in the outbox'
FROM outbox AS o JOIN runs AS r ON r.id = o.id >> 32 WHERE o.key = :key;

-- effects_open --
-- A run's effects of unknown outcome.
-- Of a transaction nobody need find out anything: the key is asked for in its own database.
SELECT f.key, e.at, e.executor FROM effects AS f JOIN events AS e ON e.id = (f.run << 32 | f.seq)
WHERE f.run = (SELECT id FROM runs WHERE run_id = :run) AND f.state IN ('intended', 'unknown')
  AND json_extract(CAST(e.data AS TEXT), '$.database') IS NULL
ORDER BY e.id;

-- effect_insert --
INSERT INTO effects (key, run, seq, state) VALUES (?, ?, ?, 'intended');

-- effect_end --
UPDATE effects SET state = ?, ended = ? WHERE key = ?;
