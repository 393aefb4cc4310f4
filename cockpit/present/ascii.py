"""ASCII stand-ins for all signs of the screen, each as wide as its sign, for terminals that show only ASCII."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from cockpit.present.width import clusters

UNKNOWN = "?"

# No stand-in is used for two signs whose difference carries a meaning in one place, such as used and borrowed in a bar.
_BY_STAND_IN = {
    "R": "●",
    "Q": "◌",
    "S": "◍",
    "+": "✓╭╮╰╯┌┐└┘├┤┼┿┬┴",
    "x": "✗×",
    "!": "⧗⚠",
    "#": "■▋▊▉▇█",
    "=": "⏸━",
    "$": "═",
    "o": "○",
    "%": "◐",
    "@": "◉",
    "*": "◆•",
    ".": "·▏▎▍",
    "/": "⇄",
    "-": "╸╌–—─▁▂▃▄▅▆▔",
    "|": "│┃▕",
    "^": "▲↑",
    "v": "▼↓▾",
    "<": "←◀‹",
    ">": "→▶›▌▸",
    "~": "≈…",
    ":": "░",
    "'": "‘’",
    '"': "“”«»",
    " ": "\u00a0",
}
_STAND_INS = str.maketrans({sign: stand_in for stand_in, signs in _BY_STAND_IN.items() for sign in signs})


@lru_cache(maxsize=4096)
def ascii_text(text: str) -> str:
    """Return the text in ASCII with the same width: without accents, and `?` per column of a character without a
    stand-in."""
    if text.isascii():
        return text
    return "".join(_ascii(cluster, columns) for cluster, columns in clusters(text.translate(_STAND_INS)))


def _ascii(cluster: str, columns: int) -> str:
    # Decomposed, é is an e and an accent: the accent is dropped, and the width stays.
    plain = "".join(char for char in unicodedata.normalize("NFKD", cluster) if char.isascii())
    return plain if len(plain) == columns else UNKNOWN * columns
