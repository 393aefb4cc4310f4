"""Text from outside, made safe to show. What cannot be seen is written as an escape, never sent raw."""

from __future__ import annotations

import re

from cockpit.model.masking import masked

INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\U000e0100-\U000e01ef]")
"""Characters that count as printable but draw nothing (fillers and joiners; Unicode's Default_Ignorable_Code_Point)."""

_MOST_LOOKED_AT = 4096
_NAMED_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def is_visible(text: str) -> bool:
    """Return whether every character draws something: no control, format, surrogate, private or unassigned character,
    no line separator, and no space but U+0020."""
    # isprintable() is one fast C call. The pattern is needed for what prints without drawing, never in ASCII.
    return text.isprintable() and (text.isascii() or not INVISIBLE.search(text))


def escaped(char: str) -> str:
    r"""Return one character as an escape: `\x1b`, `\u202e`, `\n`."""
    if char in _NAMED_ESCAPES:
        return _NAMED_ESCAPES[char]
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible(text: str, limit: int = 60) -> str:
    """Return the text on one line, without secrets and with escapes for what cannot be seen, cut to about `limit`
    characters with `…`."""
    # Cut before escaping: a text of megabytes costs no more than one of sixty characters. A secret must not be cut
    # before it is recognised, which needs some more of them.
    text = masked(text[: max(_MOST_LOOKED_AT, limit + 1)])
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    if is_visible(shown):
        return shown
    return "".join(char if is_visible(char) else escaped(char) for char in shown)


def first_unseen(text: str) -> str | None:
    """Return the first character that draws nothing; None when all do."""
    return next((char for char in text if not is_visible(char)), None)


MOST_DIGITS = 18
"""More do not fit into the 64 bits that the journal and the protocol have for a number."""


def is_whole(text: str) -> bool:
    """Return whether the text is ASCII digits, few enough to be a number of 64 bits."""
    # isascii too: isdigit is true for digits of other scripts and for superscripts.
    return 0 < len(text) <= MOST_DIGITS and text.isascii() and text.isdigit()


def whole(text: str) -> int | None:
    """Return the number that the text is, without a sign; None where it is none, or too large."""
    return int(text) if is_whole(text) else None
