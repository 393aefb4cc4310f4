"""Masks secrets in the log of a job, of which only lines or pieces are at hand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from cockpit.model.masking import (
    LONGEST_KEY,
    MASK,
    bytes_without,
    is_revealing,
    is_secret_variable,
    masked_bytes,
    may_hold_secret,
)

SHORTEST_KNOWN: Final = 6
"""Shortest value of a secret variable that is looked for in other text: shorter ones occur by accident."""
SHORTEST_BEGUN: Final = 4
"""Fewest bytes at the end of a growing log that are taken for the beginning of a secret."""
MOST_HELD: Final = 64 << 10
"""Most bytes of an incomplete line that are held back until the line ends."""
_KEY_WORDS: Final = b"PRIVATE KEY-----"
_KEY_LINE: Final = re.compile(rb"[A-Za-z0-9+/=]{1,128}\s*")


def known_secrets(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of the secret variables of an environment, to find them in what a job prints."""
    values = {value for name, value in env.items() if is_secret_variable(name, value) and len(value) >= SHORTEST_KNOWN}
    # Longest first: one may be a part of another.
    return tuple(sorted(values - {MASK}, key=len, reverse=True))


def masked_line(line: bytes, before: bytes, known: Iterable[str] = ()) -> bytes:
    """Return a line of a log without its secrets. `before`: some bytes before it, in which a private key may begin;
    `known`: values of secret variables of the job, which it may print without their names."""
    if _KEY_WORDS in before and _is_in_private_key(before) and _KEY_LINE.fullmatch(line):
        return MASK.encode() + line[len(line.rstrip()) :]
    return bytes_without(masked_bytes(line), known)


def _is_in_private_key(before: bytes) -> bool:
    if is_revealing():
        return False
    begin = before.rfind(b"-----BEGIN ")
    return begin >= 0 and _KEY_WORDS in before[begin:] and b"-----END " not in before[begin:]


class MaskedPieces:
    """Masks a log that arrives in pieces: what may begin a secret is held back until the rest is there."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = tuple(known)
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """Return what can be shown so far."""
        data = self._rest + data
        end = self._held_from(data)
        self._rest = data[end:]
        return self._shown(data[:end])

    def finish(self) -> bytes:
        """Return the rest."""
        rest, self._rest = self._rest, b""
        return self._shown(rest)

    def _shown(self, data: bytes) -> bytes:
        return bytes_without(masked_bytes(data), self._known)

    def _held_from(self, data: bytes) -> int:
        """Return where the part begins that is held back."""
        if is_revealing() or (len(data) > MOST_HELD and b"\n" not in data[-MOST_HELD:]):
            return len(data)
        begin = data.rfind(b"-----BEGIN ", max(0, len(data) - LONGEST_KEY))
        if begin >= 0 and b"-----END " not in data[begin:]:
            return begin
        line = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        rest = data[line:].decode("utf-8", "replace")
        if may_hold_secret(rest) or any(value[:4] in rest for value in self._known):
            return line
        # Of an incomplete line without a sign of a secret the last word alone, which may become one.
        return max(line, data.rfind(b" ") + 1)


def withheld_piece(data: bytes, before: bytes, after: bytes, known: Iterable[str]) -> bytes:
    """Return a piece of a log with asterisks in place of these values, as many as they have bytes, so that every other
    byte keeps its place. `before`, `after`: bytes around the piece, in which a value may begin or end."""
    whole, begin, end = before + data + after, len(before), len(before) + len(data)
    for value in known:
        secret = value.encode("utf-8", "surrogateescape")
        whole = whole.replace(secret, b"*" * len(secret))
        if cut := _begun(whole, secret):
            whole = whole[:-cut] + b"*" * cut
    return whole[begin:end]


def _begun(data: bytes, secret: bytes) -> int:
    """Return how many bytes at the end of the data begin the secret, of which the rest is not written yet."""
    sizes = range(min(len(secret) - 1, len(data)), SHORTEST_BEGUN - 1, -1)
    return next((size for size in sizes if data.endswith(secret[:size])), 0)
