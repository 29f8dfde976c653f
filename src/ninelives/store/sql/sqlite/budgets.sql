-- budget_ensure --
-- A budget without limits: it counts, and admits everything.
INSERT INTO budgets (name) VALUES (?) ON CONFLICT (name) DO NOTHING;

-- budget_id --
SELECT id, halted, halted_at FROM budgets WHERE name = ?;

-- draw_insert --
-- What a run draws on, innermost first; it never changes.
INSERT INTO draws (run, budget, rank) SELECT :run, id, :rank FROM budgets WHERE name = :name;

-- limit_set --
INSERT INTO limits (budget, per, tokens_max, microdollars_max)
VALUES (:budget, :per, :tokens_max, :microdollars_max)
ON CONFLICT (budget, per) DO UPDATE SET tokens_max = excluded.tokens_max,
  microdollars_max = excluded.microdollars_max;

-- limit_delete --
DELETE FROM limits WHERE budget = :budget AND per = :per;

-- limits_of --
SELECT per, tokens_max, microdollars_max FROM limits WHERE budget = ?
ORDER BY CASE per WHEN 'day' THEN 0 WHEN 'month' THEN 1 ELSE 2 END;

-- budgets_drawn --
-- All limits that bind a run, with what counts against each: read inside the transaction that
-- reserves, so that the check of all levels and the hold are one.
SELECT b.name, b.halted, l.per, l.tokens_max, l.microdollars_max,
  coalesce(sum(s.settled_tokens + s.held_tokens + s.unknown_tokens), 0),
  coalesce(sum(s.settled_microdollars + s.held_microdollars + s.unknown_microdollars), 0)
FROM draws AS d JOIN budgets AS b ON b.id = d.budget
LEFT JOIN limits AS l ON l.budget = b.id
LEFT JOIN spending AS s ON s.budget = l.budget
  AND s.day >= CASE l.per WHEN 'total' THEN '' WHEN 'day' THEN :day ELSE :month END
  AND s.day <= CASE l.per WHEN 'total' THEN '' WHEN 'day' THEN :day ELSE :month || '-99' END
WHERE d.run = :run GROUP BY d.rank, b.id, l.per
ORDER BY d.rank, CASE l.per WHEN 'day' THEN 0 WHEN 'month' THEN 1 ELSE 2 END;

-- budgets_of --
SELECT b.name FROM draws AS d JOIN budgets AS b ON b.id = d.budget WHERE d.run = ? ORDER BY d.rank;

-- spending_reserve --
-- A run's own budget counts in total only, a shared one by days too.
INSERT INTO spending (budget, day, calls, unpriced, held_tokens, held_microdollars)
SELECT d.budget, p.day, 1, :unpriced, :tokens, :microdollars
FROM draws AS d JOIN (SELECT '' AS day UNION ALL SELECT :day) AS p ON p.day = '' OR d.rank > 0
WHERE d.run = :run
ON CONFLICT (budget, day) DO UPDATE SET calls = calls + 1, unpriced = unpriced + excluded.unpriced,
  held_tokens = held_tokens + excluded.held_tokens,
  held_microdollars = held_microdollars + excluded.held_microdollars;

-- spending_move --
-- A hold ends on the day on which it began, in every budget that its run draws on.
UPDATE spending SET
  settled_tokens = settled_tokens + :settled_tokens,
  held_tokens = held_tokens + :held_tokens,
  unknown_tokens = unknown_tokens + :unknown_tokens,
  settled_microdollars = settled_microdollars + :settled_microdollars,
  held_microdollars = held_microdollars + :held_microdollars,
  unknown_microdollars = unknown_microdollars + :unknown_microdollars
WHERE (budget, day) IN (
  SELECT d.budget, p.day
  FROM draws AS d JOIN (SELECT '' AS day UNION ALL SELECT :day) AS p ON p.day = '' OR d.rank > 0
  WHERE d.run = :run);

-- spending_between --
-- What one budget has spent from one day to another ('' = in total).
SELECT coalesce(sum(calls), 0), coalesce(sum(unpriced), 0),
  coalesce(sum(settled_tokens), 0), coalesce(sum(held_tokens), 0),
  coalesce(sum(unknown_tokens), 0), coalesce(sum(settled_microdollars), 0),
  coalesce(sum(held_microdollars), 0), coalesce(sum(unknown_microdollars), 0)
FROM spending WHERE budget = ? AND day >= ? AND day <= ?;

-- spending_days --
SELECT day, calls, unpriced, settled_tokens, held_tokens, unknown_tokens, settled_microdollars,
  held_microdollars, unknown_microdollars
FROM spending WHERE budget = ? AND day <> '' ORDER BY day DESC LIMIT ?;

-- budget_halt --
UPDATE budgets SET halted = :reason, halted_at = :at WHERE name = :name;

-- budgets_shared --
-- Budgets that several runs draw on: those of single runs begin with run: and are skipped as
-- one range of the index on the name.
SELECT name FROM (
  SELECT name FROM budgets WHERE name < 'run:' UNION ALL SELECT name FROM budgets WHERE name >= 'run;')
WHERE name > :after ORDER BY name LIMIT :limit;

-- hold_insert --
INSERT INTO holds (id, day, status, reserved_tokens, reserved_microdollars)
VALUES (:id, :day, 'held', :tokens, :microdollars);

-- hold_of --
SELECT status, day, reserved_tokens, reserved_microdollars FROM holds WHERE id = ?;

-- hold_end --
UPDATE holds SET status = :status, tokens = :tokens, microdollars = :microdollars, ended = :ended
WHERE id = :id;

-- holds_held --
SELECT h.id, h.reserved_tokens, e.executor, e.superstep
FROM holds AS h JOIN events AS e ON e.id = h.id
WHERE h.id > ? AND h.id < ? AND h.status = 'held' ORDER BY h.id;

-- holds_open --
-- Reservations that count without a report: unknown ones, and those under way or orphaned.
SELECT h.id, r.run_id, r.incarnation, h.status, h.reserved_tokens, h.reserved_microdollars,
  h.ended, e.at, e.executor, e.superstep, e.incarnation,
  json_extract(CAST(e.data AS TEXT), '$.model'), r.owner
FROM holds AS h JOIN events AS e ON e.id = h.id JOIN runs AS r ON r.id = h.id >> 32
WHERE h.status IN ('held', 'unknown') AND EXISTS (
  SELECT 1 FROM draws AS d WHERE d.run = h.id >> 32 AND d.budget = :budget)
ORDER BY h.id LIMIT :limit;

-- holds_open_of --
-- The same for one run: a range of the primary key.
SELECT h.id, r.run_id, r.incarnation, h.status, h.reserved_tokens, h.reserved_microdollars,
  h.ended, e.at, e.executor, e.superstep, e.incarnation,
  json_extract(CAST(e.data AS TEXT), '$.model'), r.owner
FROM holds AS h JOIN events AS e ON e.id = h.id JOIN runs AS r ON r.id = h.id >> 32
WHERE h.id > :low AND h.id < :high AND h.status IN ('held', 'unknown')
ORDER BY h.id LIMIT :limit;

-- act_insert --
-- The journal of a budget that several runs draw on; a run's own acts are in the run's journal.
INSERT INTO acts (budget, at, kind, data) VALUES (?, ?, ?, ?);

-- acts_of --
SELECT id, at, kind, data FROM acts WHERE budget = ? ORDER BY id DESC LIMIT ?;
