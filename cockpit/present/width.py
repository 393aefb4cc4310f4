"""Width of texts in terminal columns, and functions that cut or pad a text to a number of them.

Wide and full-width characters take two columns, combining marks none, and an emoji sequence as many as its first emoji.
The widths are those of Unicode's East Asian Width (UAX #11) in the standard library; importing rich's table takes
thirty times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from cockpit.present.map_unique import map_unique
from cockpit.present.safe import VARIATION_SELECTOR, ZERO_WIDTH_JOINER, is_emoji

ELLIPSIS: Final = "…"


def width(text: str) -> int:
    """Return the terminal columns of a text without control characters."""
    return len(text) if text.isascii() else _wide(text)


@lru_cache(maxsize=4096)
def _wide(text: str) -> int:
    """Return the width of a text that is not ASCII, cached: a screen repeats the same dashes, states and names."""
    return sum(columns for _, columns in clusters(text))


def widest(texts: Sequence[str]) -> int:
    """Return the width of the widest text; 0 without texts."""
    return max(map(len, texts) if _ascii(texts) else map_unique(width, texts), default=0)


def aligned(texts: Sequence[str], columns: int, *, right: bool = False) -> list[str]:
    """Return each text cut or padded to exactly `columns` terminal columns."""
    # The usual case of a column: no width has to be computed, and nothing is cut.
    if _ascii(texts) and widest(texts) <= columns:
        return [text.rjust(columns) for text in texts] if right else [text.ljust(columns) for text in texts]
    return map_unique(lambda text: pad(cut(text, columns), columns, right=right), texts)


def _ascii(texts: Sequence[str]) -> bool:
    return all(map(str.isascii, texts))


def clusters(text: str) -> list[tuple[str, int]]:
    """Return the units that a terminal draws as one, with their widths: a character with its marks, an emoji sequence,
    a flag."""
    groups: list[tuple[str, int]] = []
    for char in text:
        columns = _char_width(char)
        if groups and (columns == 0 or _continues(groups[-1][0], char)):
            groups[-1] = _joined(groups[-1], char)
        else:
            groups.append((char, columns))
    return groups


def cut(text: str, columns: int) -> str:
    """Return the text cut to at most `columns` terminal columns; `…` replaces what was cut off."""
    if width(text) <= columns:
        return text
    if columns <= 0:
        return ""
    # One column is for the ellipsis.
    kept, used = "", 1
    for cluster, size in clusters(text):
        if used + size > columns:
            break
        kept, used = kept + cluster, used + size
    return kept + ELLIPSIS


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Return the text padded to at least `columns` terminal columns; `right` aligns it at the right, as figures are."""
    blanks = " " * (columns - width(text))
    return blanks + text if right else text + blanks


def _char_width(char: str) -> int:
    import unicodedata

    # Marks and format characters are drawn on the character before; a skin tone colours its emoji.
    if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me", "Cf"} or _is_skin_tone(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _continues(cluster: str, char: str) -> bool:
    """Return whether the character continues the cluster. A joiner without an emoji before it, as at the start of a
    text, joins nothing."""
    joins = cluster.endswith(ZERO_WIDTH_JOINER) and is_emoji(cluster[0]) and cluster[0] != VARIATION_SELECTOR
    return joins or (_is_flag_letter(char) and len(cluster) == 1 and _is_flag_letter(cluster))


def _joined(before: tuple[str, int], char: str) -> tuple[str, int]:
    cluster, columns = before
    # The selector makes a text sign from © on an emoji of two columns; digits, # and * before it stay as wide. A
    # second flag letter completes a flag of two columns.
    widens = (char == VARIATION_SELECTOR and columns == 1 and cluster >= "\u00a9") or _is_flag_letter(char)
    return cluster + char, 2 if widens else columns


def _is_skin_tone(char: str) -> bool:
    return "\U0001f3fb" <= char <= "\U0001f3ff"


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"
