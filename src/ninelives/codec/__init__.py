"""Typed JSON for a closed set of types: what goes in comes back equal in value and in type."""

from ninelives.codec.convert import from_json, plain
from ninelives.codec.decoding import decode, decode_arguments
from ninelives.codec.encoding import encode, encode_arguments
from ninelives.codec.fingerprints import fingerprint, fingerprint_arguments, fingerprint_bytes
from ninelives.codec.registry import GLOBAL, Registry

__all__ = [
    "GLOBAL",
    "Registry",
    "decode",
    "decode_arguments",
    "encode",
    "encode_arguments",
    "fingerprint",
    "fingerprint_arguments",
    "fingerprint_bytes",
    "from_json",
    "plain",
    "register",
]

register = GLOBAL.register
