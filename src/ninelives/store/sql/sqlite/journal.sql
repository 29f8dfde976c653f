-- event_insert --
INSERT INTO events (id, kind, at, superstep, executor, incarnation, data)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- events_between --
-- A run's events by their ids (run << 32 | seq), in order.
SELECT id, kind, at, superstep, executor, incarnation, data
FROM events WHERE id > ? AND id < ? ORDER BY id LIMIT ?;

-- outputs_between --
SELECT id, kind, at, superstep, executor, incarnation, data
FROM events WHERE id > ? AND id < ? AND kind = 'output' ORDER BY id LIMIT ?;

-- pending_insert --
INSERT INTO pending (id) VALUES (?);

-- pending_delete --
DELETE FROM pending WHERE id = ?;

-- pending_of --
-- The messages that wait for the next superstep, in the order in which they were sent.
SELECT e.id, e.kind, e.at, e.superstep, e.executor, e.incarnation, e.data
FROM pending AS p JOIN events AS e ON e.id = p.id
WHERE p.id > ? AND p.id < ? ORDER BY p.id;

-- state_set --
INSERT INTO state (run, scope, key, seq) VALUES (?, ?, ?, ?)
ON CONFLICT (run, scope, key) DO UPDATE SET seq = excluded.seq;

-- state_delete --
DELETE FROM state WHERE run = ? AND scope = ? AND key = ?;

-- appended_insert --
INSERT INTO appended (run, scope, key, seq) VALUES (?, ?, ?, ?);

-- appended_delete --
DELETE FROM appended WHERE run = ? AND scope = ? AND key = ?;

-- state_of --
-- The events that the present state is made of: last values, then what was appended to them.
SELECT e.id, e.kind, e.at, e.superstep, e.executor, e.incarnation, e.data
FROM state AS s JOIN events AS e ON e.id = (s.run << 32 | s.seq) WHERE s.run = :run
UNION ALL
SELECT e.id, e.kind, e.at, e.superstep, e.executor, e.incarnation, e.data
FROM appended AS a JOIN events AS e ON e.id = (a.run << 32 | a.seq) WHERE a.run = :run
ORDER BY 1;

-- finished_insert --
INSERT INTO finished (run, delivery, data) VALUES (?, ?, ?);

-- finished_of --
SELECT delivery, data FROM finished WHERE run = ? ORDER BY delivery;

-- finished_delete --
DELETE FROM finished WHERE run = ?;
