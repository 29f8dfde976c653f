-- effect_of --
SELECT e.run, r.run_id, e.seq, e.ended, e.state FROM effects AS e JOIN runs AS r ON r.id = e.run
WHERE e.key = ?;

-- effects_open --
-- A run's effects of unknown outcome: a range of the primary key, since keys begin with its id.
SELECT f.key, e.at, e.executor FROM effects AS f JOIN events AS e ON e.id = (f.run << 32 | f.seq)
WHERE f.key >= :run || ':' AND f.key < :run || ';' AND f.state IN ('intended', 'unknown')
ORDER BY e.id;

-- effect_insert --
INSERT INTO effects (key, run, seq, state) VALUES (?, ?, ?, 'intended');

-- effect_end --
UPDATE effects SET state = ?, ended = ? WHERE key = ?;
