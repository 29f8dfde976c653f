"""Fingerprints of values and of calls: equal for equal values, whatever the order of keys."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from ninelives.codec import encoding
from ninelives.codec.registry import Registry

_canonical = msgspec.json.Encoder(order="sorted")


def fingerprint(value: object, registry: Registry) -> str:
    """Fingerprint a value: 32 hexadecimal digits.

    Order of dict keys and of sets does not matter; 1, 1.0 and True differ, list and tuple too.

    Raises:
        Unencodable: as `encode`.
    """
    return fingerprint_bytes(_canonical.encode(encoding.tagged(value, registry, canonical=True)))


def fingerprint_arguments(
    args: Sequence[object], kwargs: Mapping[str, object], registry: Registry
) -> str:
    """Fingerprint a call's arguments."""
    return fingerprint_bytes(
        _canonical.encode(encoding.tagged_arguments(args, kwargs, registry, canonical=True))
    )


def fingerprint_bytes(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
