-- schema_1 --
-- Times are milliseconds, labels only. A journal row's id is run << 32 | seq, so that one
-- B-tree holds every run's events in order and large values fill whole pages.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT;

CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL UNIQUE,
  workflow TEXT NOT NULL,
  input_fingerprint TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN
    ('running', 'waiting', 'parked', 'failed', 'completed', 'cancelled')),
  code TEXT NOT NULL DEFAULT '',
  reason TEXT NOT NULL DEFAULT '',
  cancel INTEGER NOT NULL DEFAULT 0 CHECK (cancel IN (0, 1)),
  epoch INTEGER NOT NULL,
  incarnation INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  owner TEXT NOT NULL,
  deaths INTEGER NOT NULL DEFAULT 0,
  seq INTEGER NOT NULL,
  superstep INTEGER NOT NULL,
  committed_seq INTEGER NOT NULL,
  admitted_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE incarnations (
  run INTEGER NOT NULL,
  number INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  pid INTEGER NOT NULL,
  host TEXT NOT NULL,
  code_version TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  PRIMARY KEY (run, number)
) WITHOUT ROWID, STRICT;

CREATE TABLE events (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  superstep INTEGER NOT NULL,
  executor TEXT NOT NULL,
  incarnation INTEGER NOT NULL,
  data BLOB NOT NULL
) STRICT;

-- Views of the journal, kept in the transaction that appends to it.
CREATE TABLE pending (id INTEGER PRIMARY KEY) STRICT;

CREATE TABLE state (
  run INTEGER NOT NULL,
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (run, scope, key)
) WITHOUT ROWID, STRICT;

CREATE TABLE appended (
  run INTEGER NOT NULL,
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (run, scope, key, seq)
) WITHOUT ROWID, STRICT;

CREATE TABLE effects (
  key TEXT PRIMARY KEY,
  run INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  ended INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL CHECK (state IN
    ('intended', 'confirmed', 'refused', 'unknown', 'failed'))
) WITHOUT ROWID, STRICT;

CREATE TABLE holds (
  id INTEGER PRIMARY KEY,
  status TEXT NOT NULL CHECK (status IN ('held', 'settled', 'unknown', 'released')),
  reserved_tokens INTEGER NOT NULL,
  tokens INTEGER NOT NULL
) STRICT;

CREATE TABLE budgets (
  run INTEGER NOT NULL,
  name TEXT NOT NULL,
  tokens_max INTEGER,
  settled_tokens INTEGER NOT NULL DEFAULT 0,
  held_tokens INTEGER NOT NULL DEFAULT 0,
  unknown_tokens INTEGER NOT NULL DEFAULT 0,
  halted TEXT NOT NULL DEFAULT '',
  halted_at INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run, name)
) WITHOUT ROWID, STRICT;

-- Work of handlers that finished before their siblings: private until the superstep commits.
CREATE TABLE finished (
  run INTEGER NOT NULL,
  delivery INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (run, delivery)
) STRICT;

-- Messages to the outside. `id` is that of the event that queued one. `claimed_by`, `attempts`,
-- `next_at` and the last error are the relays' notes; all else is a view of the journal.
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  channel TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'delivered', 'dead')),
  claimed_by TEXT NOT NULL DEFAULT '' CHECK (claimed_by = '' OR state = 'queued'),
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER NOT NULL,
  error TEXT NOT NULL DEFAULT '',
  message TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX outbox_queued ON outbox (channel, id) WHERE state = 'queued';
CREATE INDEX outbox_claimed ON outbox (claimed_by) WHERE claimed_by <> '';
CREATE INDEX outbox_dead ON outbox (id) WHERE state = 'dead';
