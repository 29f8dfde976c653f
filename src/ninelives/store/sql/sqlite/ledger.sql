-- budget_insert --
INSERT INTO budgets (run, name, tokens_max) VALUES (?, ?, ?);

-- budget_of --
-- Read inside the write transaction that reserves: the check and the hold are one.
SELECT tokens_max, settled_tokens, held_tokens, unknown_tokens, halted, halted_at
FROM budgets WHERE run = ? AND name = ?;

-- budget_move --
UPDATE budgets SET settled_tokens = settled_tokens + :settled,
  held_tokens = held_tokens + :held, unknown_tokens = unknown_tokens + :unknown
WHERE run = :run AND name = :name;

-- budget_halt --
UPDATE budgets SET halted = ?, halted_at = ? WHERE run = ? AND name = ?;

-- hold_insert --
INSERT INTO holds (id, status, reserved_tokens, tokens) VALUES (?, 'held', ?, ?);

-- hold_end --
-- Ends a hold once: no row means that it was not held any more.
UPDATE holds SET status = ?, tokens = ? WHERE id = ? AND status = 'held'
RETURNING reserved_tokens;

-- holds_held --
SELECT h.id, h.reserved_tokens, e.executor, e.superstep
FROM holds AS h JOIN events AS e ON e.id = h.id
WHERE h.id > ? AND h.id < ? AND h.status = 'held' ORDER BY h.id;

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
