-- run_insert --
-- Admits a run; the caller has checked in the same transaction that the id is free.
INSERT INTO runs (run_id, workflow, input_fingerprint, state, epoch, incarnation, attempt,
  owner, seq, superstep, committed_seq, admitted_at, updated_at)
VALUES (:run_id, :workflow, :input_fingerprint, 'running', 1, 1, 1,
  :owner, 0, 0, 1, :at, :at)
RETURNING id;

-- run_by_id --
-- One run by its public id.
SELECT id, run_id, workflow, input_fingerprint, state, code, reason, epoch, incarnation,
  attempt, owner, deaths, seq, superstep, committed_seq, admitted_at, updated_at
FROM runs WHERE run_id = ?;

-- runs_page --
-- Newest first, below a cursor on the primary key.
SELECT id, run_id, workflow, input_fingerprint, state, code, reason, epoch, incarnation,
  attempt, owner, deaths, seq, superstep, committed_seq, admitted_at, updated_at
FROM runs WHERE id < ? ORDER BY id DESC LIMIT ?;

-- run_advance --
-- The owner's check and the numbering in one statement: no row means an old epoch.
UPDATE runs SET seq = seq + :count, updated_at = :at
WHERE id = :id AND epoch = :epoch RETURNING seq - :count, cancel;

-- run_advance_any --
-- Numbering for a person's act, which needs no ownership.
UPDATE runs SET seq = seq + :count, updated_at = :at
WHERE id = :id RETURNING seq - :count, incarnation;

-- run_claim --
-- Take-over: the epoch grows, all earlier owners are fenced from here on.
UPDATE runs SET epoch = epoch + 1, incarnation = incarnation + 1,
  attempt = attempt + :attempts, owner = :owner, state = 'running', code = '', reason = ''
WHERE id = :id RETURNING epoch, incarnation, attempt;

-- run_attempt --
-- A new attempt: failures of the last one are tried again.
UPDATE runs SET attempt = attempt + 1 WHERE id = ?;

-- run_deaths --
-- How many owners in a row have died without recording any progress.
UPDATE runs SET deaths = ? WHERE id = ?;

-- run_progress --
-- Whether an incarnation recorded anything that the next one need not do again.
SELECT 1 FROM events WHERE id >= ? AND id < ? AND incarnation = ? AND kind IN
  ('step_recorded', 'step_failed', 'model_replied', 'effect_intended', 'effect_ended', 'transaction_rolled_back',
   'handler_finished', 'handler_failed', 'retry_scheduled', 'handler_retried',
   'superstep_committed') LIMIT 1;

-- run_state --
UPDATE runs SET state = :state, code = :code, reason = :reason WHERE id = :id;

-- run_cancel --
-- A person's wish, which the owner sees with its next write.
UPDATE runs SET cancel = 1 WHERE id = ?;

-- run_release --
UPDATE runs SET owner = '' WHERE id = ?;

-- run_committed --
UPDATE runs SET superstep = :superstep, committed_seq = :seq WHERE id = :id;

-- incarnation_insert --
INSERT INTO incarnations (run, number, epoch, pid, host, code_version, started_at)
VALUES (:run, :number, :epoch, :pid, :host, :code_version, :at);

-- incarnations_of --
SELECT number, epoch, pid, host, started_at, code_version FROM incarnations WHERE run = ? ORDER BY number;
