"""Masks secrets in the log of a job, of which only lines or pieces are at hand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from cockpit.model.masking import bytes_without, is_revealing, masked_bytes
from cockpit.model.secret_signs import LONGEST_KEY, MASK, is_secret_variable, may_hold_secret

SHORTEST_KNOWN: Final = 6
"""Shortest value of a secret variable that is looked for in other text: shorter ones occur by accident."""
SHORTEST_BEGUN: Final = 4
"""Fewest bytes at the end of a growing log that are taken for the beginning of a secret."""
MOST_HELD: Final = 64 << 10
"""Most bytes of an incomplete line that are held back until the line ends."""
MOST_BEFORE: Final = 512
"""Most bytes of the line before a text in which the name of a secret is looked for."""
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
    if is_revealing():
        return line
    near = _last_lines(before)
    return _masked_behind(near, _without_values(line, near, known))


def _without_values(data: bytes, before: bytes, known: Iterable[str]) -> bytes:
    """Return the data without these values. A long line comes in pieces, at whose edges a value may be cut."""
    known = tuple(known)
    return withheld_piece(bytes_without(data, known), before[before.rfind(b"\n") + 1 :], b"", known)


def _last_lines(before: bytes) -> bytes:
    """Return the last complete line of these bytes and what follows it, or the end of that."""
    end = before.rfind(b"\n")
    begin = before.rfind(b"\n", 0, max(0, end)) + 1
    return before[max(begin, len(before) - MOST_BEFORE) :]


def _masked_behind(before: bytes, data: bytes) -> bytes:
    """Return the data without its secrets, also those whose name or beginning stands before it."""
    # The lines of a private key have no names.
    before = before.rpartition(_KEY_WORDS)[2]
    if not before:
        return masked_bytes(data)
    head, whole = masked_bytes(before), masked_bytes(before + data)
    if whole.startswith(head):
        return whole[len(head) :]
    # The secret begins in the text before: what is left of it ends with the word.
    return MASK.encode() + masked_bytes(data[len(data.split(maxsplit=1)[0]) :] if data.strip() else data)


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
        self._before = b""
        """The end of what was shown, which may be the name of a secret."""

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
        if not data or is_revealing():
            return data
        shown = _masked_behind(self._before, _without_values(data, self._before, self._known))
        self._before = _last_lines(self._before[-MOST_BEFORE:] + data[-2 * MOST_BEFORE :])
        return shown

    def _may_begin(self, text: str) -> bool:
        return may_hold_secret(text) or any(value[:SHORTEST_BEGUN] in text for value in self._known)

    def _held_from(self, data: bytes) -> int:
        """Return where the part begins that is held back."""
        if is_revealing():
            return len(data)
        if len(data) > MOST_HELD and b"\n" not in data[-MOST_HELD:]:
            # Between two words where there are any, so that no value is cut.
            may_be_cut = self._may_begin(data[-MOST_BEFORE:].decode("utf-8", "replace"))
            return max(len(data) - MOST_BEFORE, data.rfind(b" ") + 1) if may_be_cut else len(data)
        begin = data.rfind(b"-----BEGIN ", max(0, len(data) - LONGEST_KEY))
        if begin >= 0 and b"-----END " not in data[begin:]:
            return begin
        line = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        rest = data[line:].decode("utf-8", "replace")
        if self._may_begin(rest):
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
