"""The screen for terminals that speak ASCII alone: every sign has a stand-in of the same width."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from cockpit.present.width import clusters

UNKNOWN = "?"

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
    """As wide as before: accents are dropped, and what has no stand-in is `?` for each of its columns."""
    if text.isascii():
        return text
    return "".join(_ascii(cluster, columns) for cluster, columns in clusters(text.translate(_STAND_INS)))


def _ascii(cluster: str, columns: int) -> str:
    plain = "".join(char for char in unicodedata.normalize("NFKD", cluster) if char.isascii())
    return plain if len(plain) == columns else UNKNOWN * columns
