-- schema_2 --
-- What a host keeps about runs; no view of any journal.
CREATE TABLE notes (
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (scope, key)
) WITHOUT ROWID, STRICT;

-- note_put --
-- Writes a note, also in the transaction of a run's admission.
INSERT INTO notes (scope, key, value) VALUES (?, ?, ?)
ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value;

-- note_get --
SELECT value FROM notes WHERE scope = ? AND key = ?;

-- note_delete --
DELETE FROM notes WHERE scope = ? AND key = ? RETURNING 1;

-- notes_under --
-- A range of one scope's keys by the primary key; `to` is greater than every key in the range.
SELECT key, value FROM notes
WHERE scope = :scope AND key >= :after AND key < :to AND NOT (:exclusive AND key = :after)
ORDER BY key LIMIT :limit;
