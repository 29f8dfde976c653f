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

CREATE INDEX effects_of ON effects (run);

-- `day` is the day (UTC) of the request: a call counts in the window in which it was admitted.
-- Money is in millionths of a dollar; NULL: nobody knows the price. `ended` is the seq of the
-- event that ended the hold last.
CREATE TABLE holds (
  id INTEGER PRIMARY KEY,
  day TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('held', 'settled', 'unknown', 'released')),
  reserved_tokens INTEGER NOT NULL CHECK (reserved_tokens >= 0),
  reserved_microdollars INTEGER CHECK (reserved_microdollars >= 0),
  tokens INTEGER NOT NULL DEFAULT 0 CHECK (tokens >= 0),
  microdollars INTEGER NOT NULL DEFAULT 0 CHECK (microdollars >= 0),
  ended INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX holds_open ON holds (id) WHERE status IN ('held', 'unknown');

-- A budget belongs to one run (run:ID) or to many (store, workflow:NAME, tenant:NAME, or any).
CREATE TABLE budgets (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  halted TEXT NOT NULL DEFAULT '',
  halted_at INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE limits (
  budget INTEGER NOT NULL,
  per TEXT NOT NULL CHECK (per IN ('total', 'day', 'month')),
  tokens_max INTEGER CHECK (tokens_max >= 0),
  microdollars_max INTEGER CHECK (microdollars_max >= 0),
  PRIMARY KEY (budget, per),
  CHECK (tokens_max IS NOT NULL OR microdollars_max IS NOT NULL)
) WITHOUT ROWID, STRICT;

CREATE TABLE draws (
  run INTEGER NOT NULL,
  budget INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  PRIMARY KEY (run, budget)
) WITHOUT ROWID, STRICT;

-- What holds add up to, by budget and day ('' = in total): kept even without a limit.
CREATE TABLE spending (
  budget INTEGER NOT NULL,
  day TEXT NOT NULL,
  calls INTEGER NOT NULL DEFAULT 0,
  unpriced INTEGER NOT NULL DEFAULT 0,
  settled_tokens INTEGER NOT NULL DEFAULT 0 CHECK (settled_tokens >= 0),
  held_tokens INTEGER NOT NULL DEFAULT 0 CHECK (held_tokens >= 0),
  unknown_tokens INTEGER NOT NULL DEFAULT 0 CHECK (unknown_tokens >= 0),
  settled_microdollars INTEGER NOT NULL DEFAULT 0 CHECK (settled_microdollars >= 0),
  held_microdollars INTEGER NOT NULL DEFAULT 0 CHECK (held_microdollars >= 0),
  unknown_microdollars INTEGER NOT NULL DEFAULT 0 CHECK (unknown_microdollars >= 0),
  PRIMARY KEY (budget, day)
) WITHOUT ROWID, STRICT;

CREATE TABLE acts (
  id INTEGER PRIMARY KEY,
  budget INTEGER NOT NULL,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('budget_set', 'budget_halted', 'halt_cleared')),
  data BLOB NOT NULL
) STRICT;

CREATE INDEX acts_of ON acts (budget, id);

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
