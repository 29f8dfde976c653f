"""What every database of a user's does alike: the statements, the row's meaning, a lost COMMIT.

A row is `open` while its transaction is under way (nobody else can see it then), `done` with its
result, or `barred`: rolled back by an owner with this epoch, so that older ones may not commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from ninelives import errors
from ninelives.durable.databases import Kept, Row

logger = logging.getLogger(__name__)

# `:name` is the form of sqlite3 and SQLAlchemy; psycopg's is made of it. {bytes} is BLOB or BYTEA.
CREATE = """
CREATE TABLE IF NOT EXISTS ninelives_transactions (
  store TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  at BIGINT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'done', 'barred')),
  result {bytes},
  PRIMARY KEY (store, key)
)
"""
# Waits for whoever is at the same key, and then inserts nothing if they have committed.
TAKE = """
INSERT INTO ninelives_transactions (store, key, fingerprint, epoch, at, state)
VALUES (:store, :key, :fingerprint, :epoch, :at, 'open') ON CONFLICT (store, key) DO NOTHING
"""
FIND = """
SELECT state, fingerprint, epoch, result FROM ninelives_transactions
WHERE store = :store AND key = :key
"""
LOCK = FIND + "FOR UPDATE"
# A barred key is taken up by the owner that barred it, or by a later one.
TAKE_UP = """
UPDATE ninelives_transactions
SET state = 'open', fingerprint = :fingerprint, epoch = :epoch, at = :at
WHERE store = :store AND key = :key AND state = 'barred' AND epoch <= :epoch
"""
DONE = """
UPDATE ninelives_transactions SET state = 'done', result = :result
WHERE store = :store AND key = :key AND state = 'open'
"""
BAR = """
INSERT INTO ninelives_transactions (store, key, fingerprint, epoch, at, state)
VALUES (:store, :key, :fingerprint, :epoch, :at, 'barred')
ON CONFLICT (store, key) DO UPDATE SET epoch = excluded.epoch
WHERE ninelives_transactions.state = 'barred' AND ninelives_transactions.epoch < excluded.epoch
"""
PRUNE = "DELETE FROM ninelives_transactions WHERE at < :before"

Found = tuple[str, str, int, bytes | None]
ENDED = "has committed or rolled back by itself"
MISSING = (
    "it has no table ninelives_transactions; create it once with `ninelives transactions init`, "
    "or with create_transactions_table()"
)


@dataclass(slots=True)
class Attempt:
    """How far one attempt came: whether the key was asked for, whether COMMIT was sent."""

    asked: bool = False
    committing: bool = False


def known(row: Row, found: Found | None) -> Kept | None:
    """What a row that was found says: its result, or None if the transaction may be carried out.

    Raises:
        StaleEpoch: a later owner has barred the key.
        TransactionMisused: an earlier function has committed without its result.
    """
    if found is None:
        return None
    state, fingerprint, epoch, result = found
    if state == "done":
        return Kept(fingerprint, bytes(result or b"null"), is_new=False)
    if state == "open":
        why = "has committed by itself before its end; a person must see what is missing"
        raise errors.TransactionMisused(row.key, why)
    if epoch > row.epoch:
        raise errors.StaleEpoch(row.key.partition(":")[0], row.epoch)
    return None


def carry_out(name: str, once: Callable[[Attempt], Kept]) -> Kept:
    """Make one attempt; if COMMIT's answer was lost, ask for the key by another.

    The second attempt takes the key first, which waits for a backend that is still committing,
    and so either finds the row or may do the work itself.
    """
    first = Attempt()
    try:
        return once(first)
    except Exception as error:
        if not first.committing:
            raise
        logger.warning("%s: the answer to COMMIT was lost (%s); asking for the key", name, error)
        lost = error
    again = Attempt()
    try:
        return once(again)
    except Exception as error:
        if again.asked and not again.committing:
            raise
        raise errors.TransactionUnknown(name, f"{lost}; then {error}") from error
