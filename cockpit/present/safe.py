"""Functions that make text from outside fit to be shown: characters that could act on a terminal become visible, and
secrets are masked (`cockpit.model.masking`); all else stays unchanged.

Control, C1, bidirectional, zero-width and other format characters, lone surrogates and line separators are shown as
Python writes them in a string (`\\x1b`, `\\u202e`). Letters, CJK, emoji and combining marks are unchanged; a zero-width
joiner stays only where it joins two emoji.
"""

from __future__ import annotations

import re
from typing import Final

from cockpit.model.masking import masked
from cockpit.model.text import INVISIBLE, escaped

ZERO_WIDTH_JOINER: Final = "\u200d"
VARIATION_SELECTOR: Final = "\ufe0f"

_LONGEST_WORD, _KEPT_HEAD, _KEPT_TAIL = 200, 140, 40
"""Most characters of one word of an error, and those that remain of a longer one."""
_LONG_WORD: Final = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")

HARMFUL_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def safe(text: str) -> str:
    """Return the text without secrets, and harmless."""
    return harmless(masked(text))


def harmless(text: str) -> str:
    """Return the text with every character that a terminal might obey or hide written as an escape; secrets stay, as
    in what the user types."""
    # Nearly all texts are plain ASCII, for which two scans in C suffice; names in other scripts take a third.
    if text.isascii():
        return text if text.isprintable() else _escaped(text)
    if text.isprintable() and INVISIBLE.search(text) is None:
        return text
    return _escaped(text)


def safe_lines(text: str) -> str:
    """Return a text of several lines made fit to be shown like `safe`: newlines and tabs stay, and a carriage return
    before a newline is removed."""
    return harmless_lines(masked(text))


def harmless_lines(text: str) -> str:
    """Return a text of several lines made harmless; secrets stay."""
    # Line ends of Windows are no carriage returns that overwrite a line.
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(harmless, line.split("\t"))) for line in lines)


def shortened(text: str) -> str:
    """Return a message without the middle of its very long words, such as numbers of thousands of digits."""
    return _LONG_WORD.sub(_ends, text) if len(text) > _LONGEST_WORD else text


def _ends(match: re.Match[str]) -> str:
    word = match[0]
    return f"{word[:_KEPT_HEAD]}…{word[-_KEPT_TAIL:]}"


def is_harmful(char: str) -> bool:
    """Return whether a terminal might obey this character, or draw nothing for it."""
    import unicodedata

    return unicodedata.category(char) in HARMFUL_CATEGORIES or INVISIBLE.match(char) is not None


def is_emoji(char: str) -> bool:
    """Return whether a joiner beside this character makes one picture of two."""
    return char == VARIATION_SELECTOR or "\u2190" <= char <= "\u2bff" or "\U0001f000" <= char <= "\U0001faff"


def _escaped(text: str) -> str:
    # Each different character is judged once: a wide table has lines of thousands, nearly all of them spaces.
    escapes = {ord(char): escaped(char) for char in set(text) if is_harmful(char)}
    if ZERO_WIDTH_JOINER not in text:
        return text.translate(escapes)
    return "".join(
        char if _joins_emoji(text, index) else escapes.get(ord(char), char) for index, char in enumerate(text)
    )


def _joins_emoji(text: str, index: int) -> bool:
    return (
        text[index] == ZERO_WIDTH_JOINER
        and 0 < index < len(text) - 1
        and is_emoji(text[index - 1])
        and is_emoji(text[index + 1])
    )


class LogText:
    """A decoder for a log that arrives in pieces and is masked already: UTF-8, undecodable bytes as escapes, harmless;
    newlines and tabs stay."""

    def __init__(self) -> None:
        from codecs import getincrementaldecoder

        self._decoder = getincrementaldecoder("utf-8")("backslashreplace")
        self._held_return = ""

    def feed(self, data: bytes) -> str:
        """Return the text that can be shown so far."""
        text = self._held_return + self._decoder.decode(data)
        # A newline that makes this carriage return part of a line end may come with the next piece.
        self._held_return = "\r" if text.endswith("\r") else ""
        return harmless_lines(text.removesuffix("\r"))

    def finish(self) -> str:
        """Return the rest of the text, including an incomplete character at its end."""
        text = self._held_return + self._decoder.decode(b"", final=True)
        self._held_return = ""
        return harmless_lines(text)
