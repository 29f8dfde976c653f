-- check_numbers --
-- A run's row and its journal agree on the last number.
SELECT r.run_id, coalesce((SELECT max(e.id) FROM events AS e
    WHERE e.id > r.id << 32 AND e.id < (r.id + 1) << 32), 0) & 4294967295, r.seq
FROM runs AS r
WHERE r.seq <> coalesce((SELECT max(e.id) FROM events AS e
    WHERE e.id > r.id << 32 AND e.id < (r.id + 1) << 32), 0) & 4294967295;

-- check_pending --
SELECT p.id FROM pending AS p LEFT JOIN events AS e ON e.id = p.id
WHERE e.id IS NULL OR e.kind NOT IN ('message', 'run_admitted');

-- check_holds --
SELECT h.id FROM holds AS h LEFT JOIN events AS e ON e.id = h.id
WHERE e.id IS NULL OR e.kind <> 'model_requested';

-- check_budgets --
-- Settled at actual, held and unknown at reserved: the counters are the sums of the holds.
WITH summed AS (
  SELECT d.budget, p.day, count(*) AS calls,
    sum(h.tokens) FILTER (WHERE h.status = 'settled') AS settled_tokens,
    sum(h.reserved_tokens) FILTER (WHERE h.status = 'held') AS held_tokens,
    sum(h.reserved_tokens) FILTER (WHERE h.status = 'unknown') AS unknown_tokens,
    sum(h.microdollars) FILTER (WHERE h.status = 'settled') AS settled_microdollars,
    sum(h.reserved_microdollars) FILTER (WHERE h.status = 'held') AS held_microdollars,
    sum(h.reserved_microdollars) FILTER (WHERE h.status = 'unknown') AS unknown_microdollars
  FROM holds AS h JOIN draws AS d ON d.run = h.id >> 32
  JOIN (SELECT DISTINCT day FROM holds UNION SELECT '') AS p
    ON p.day = '' OR (p.day = h.day AND d.rank > 0)
  GROUP BY 1, 2)
SELECT b.name, coalesce(s.day, x.day) FROM spending AS s
FULL JOIN summed AS x ON x.budget = s.budget AND x.day = s.day
JOIN budgets AS b ON b.id = coalesce(s.budget, x.budget)
WHERE s.budget IS NULL
  OR (s.calls, s.settled_tokens, s.held_tokens, s.unknown_tokens,
      s.settled_microdollars, s.held_microdollars, s.unknown_microdollars)
  <> (coalesce(x.calls, 0), coalesce(x.settled_tokens, 0), coalesce(x.held_tokens, 0),
      coalesce(x.unknown_tokens, 0), coalesce(x.settled_microdollars, 0),
      coalesce(x.held_microdollars, 0), coalesce(x.unknown_microdollars, 0));

-- check_draws --
-- Every run draws on its own budget, or it would count nowhere.
SELECT r.run_id FROM runs AS r WHERE NOT EXISTS (
  SELECT 1 FROM draws AS d JOIN budgets AS b ON b.id = d.budget
  WHERE d.run = r.id AND d.rank = 0 AND b.name = 'run:' || r.run_id);

-- check_effects --
SELECT f.key FROM effects AS f LEFT JOIN events AS e ON e.id = (f.run << 32 | f.seq)
WHERE e.id IS NULL OR e.kind <> 'effect_intended';

-- check_state --
SELECT s.run, s.key, s.seq FROM state AS s LEFT JOIN events AS e ON e.id = (s.run << 32 | s.seq)
WHERE e.id IS NULL OR e.kind <> 'state';

-- check_settled --
-- A hold that is still held although its journal says how it ended.
SELECT h.id & 4294967295, r.run_id FROM events AS e
JOIN holds AS h ON h.id = (e.id & ~4294967295) | json_extract(CAST(e.data AS TEXT), '$.hold')
JOIN runs AS r ON r.id = e.id >> 32
WHERE e.kind IN ('model_replied', 'model_unsettled', 'hold_resolved')
  AND (h.status = 'held' OR (h.status = 'unknown' AND e.kind = 'hold_resolved'));

-- check_consumed --
-- A message that waits although a handler has consumed it.
SELECT p.id & 4294967295, r.run_id FROM events AS e
JOIN json_each(CAST(e.data AS TEXT), '$.messages') AS consumed
JOIN pending AS p ON p.id = (e.id & ~4294967295) | consumed.value
JOIN runs AS r ON r.id = e.id >> 32
WHERE e.kind = 'handler_finished';

-- check_outbox --
-- A message's state is what the last event about it says.
WITH latest AS (
  SELECT (id & ~4294967295) | json_extract(CAST(data AS TEXT), '$.queued') AS queued, max(id) AS id
  FROM events WHERE kind IN ('outbox_delivered', 'outbox_dead', 'outbox_requeued') GROUP BY 1)
SELECT o.key, o.state FROM outbox AS o
LEFT JOIN events AS q ON q.id = o.id AND q.kind = 'outbox_queued'
LEFT JOIN latest AS l ON l.queued = o.id
LEFT JOIN events AS e ON e.id = l.id
WHERE q.id IS NULL OR o.state <> CASE e.kind
  WHEN 'outbox_delivered' THEN 'delivered' WHEN 'outbox_dead' THEN 'dead' ELSE 'queued' END;

-- check_outbox_lost --
SELECT e.id & 4294967295, r.run_id FROM events AS e JOIN runs AS r ON r.id = e.id >> 32
WHERE e.kind = 'outbox_queued' AND NOT EXISTS (SELECT 1 FROM outbox AS o WHERE o.id = e.id);
