-- outbox_insert --
INSERT INTO outbox (id, key, channel, next_at) VALUES (?, ?, ?, ?);

-- outbox_end --
-- Delivered or dead; whoever had claimed it has no claim any more.
UPDATE outbox SET state = ?, claimed_by = '', attempts = ?, error = ?, message = ?
WHERE id = ?;

-- outbox_requeue --
UPDATE outbox SET state = 'queued', attempts = 0, next_at = ?, error = '', message = ''
WHERE id = ?;

-- outbox_claimants --
-- Who has claimed anything: the caller asks the operating system which of them are dead.
SELECT DISTINCT claimed_by FROM outbox WHERE claimed_by <> '';

-- outbox_claim --
-- The check and the claim in one statement. What a dead relay had claimed is free. In an ordered
-- channel only the first undelivered message of each run may be claimed.
UPDATE outbox SET claimed_by = :token, attempts = attempts + 1
WHERE id IN (
  SELECT o.id FROM outbox AS o
  WHERE o.state = 'queued' AND o.channel = :channel AND o.next_at <= :now
    AND (o.claimed_by = '' OR o.claimed_by IN (SELECT value FROM json_each(:dead)))
    AND NOT (:ordered AND EXISTS (
      SELECT 1 FROM outbox AS earlier
      WHERE earlier.state = 'queued' AND earlier.channel = :channel
        AND earlier.id > (o.id >> 32) << 32 AND earlier.id < o.id))
  ORDER BY o.id LIMIT :limit)
RETURNING id, attempts;

-- outbox_due --
-- Whether a claim would find anything: asked without a write.
SELECT 1 FROM outbox AS o
WHERE o.state = 'queued' AND o.channel = :channel AND o.next_at <= :now
  AND (o.claimed_by = '' OR o.claimed_by IN (SELECT value FROM json_each(:dead)))
  AND NOT (:ordered AND EXISTS (
    SELECT 1 FROM outbox AS earlier
    WHERE earlier.state = 'queued' AND earlier.channel = :channel
      AND earlier.id > (o.id >> 32) << 32 AND earlier.id < o.id))
LIMIT 1;

-- outbox_parcel --
SELECT r.run_id, o.channel, o.key, e.at, e.data
FROM outbox AS o JOIN events AS e ON e.id = o.id JOIN runs AS r ON r.id = o.id >> 32
WHERE o.id = ?;

-- outbox_postpone --
-- Only the claimant may say that its attempt failed.
UPDATE outbox SET claimed_by = '', next_at = ?, error = ?, message = ?
WHERE id = ? AND claimed_by = ? RETURNING id;

-- outbox_mine --
SELECT 1 FROM outbox WHERE id = ? AND claimed_by = ? AND state = 'queued';

-- outbox_page --
-- Letters in one state, newest first; '' as the run stands for all runs.
SELECT o.id, r.run_id, o.channel, o.key, o.state, o.claimed_by, o.attempts, o.next_at, e.at,
  o.error, o.message
FROM outbox AS o JOIN events AS e ON e.id = o.id JOIN runs AS r ON r.id = o.id >> 32
WHERE o.state = :state AND (:run = '' OR r.run_id = :run) ORDER BY o.id DESC LIMIT :limit;

-- outbox_dead_of --
-- A run's dead letters: one key, or '' for all.
SELECT o.id, o.key FROM outbox AS o
WHERE o.state = 'dead' AND o.id > :low AND o.id < :high AND (:key = '' OR o.key = :key)
ORDER BY o.id;

-- outbox_channels --
-- How many messages wait in each channel.
SELECT channel, count(*) FROM outbox WHERE state = 'queued' GROUP BY channel ORDER BY channel;
