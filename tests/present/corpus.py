"""Text that attacks a terminal, and text that only looks unusual."""

from __future__ import annotations

HOSTILE = (
    "\x1b[31mred\x1b[0m",
    "\x1b]0;owned\x07",
    "\x1b]52;c;cm0gLXJmIC8=\x07",
    "\x1b]8;;http://evil.example\x1b\\here",
    "\x9b31mC1",
    "a\nb",
    "good\rEVIL",
    "a\x08b\x7f\0",
    "evil\u202etxt.exe",
    "\u2066isolate\u2069",
    "zero\u200bwidth\ufeff",
    "joined\u200dup",
    "line\u2028separator\u2029",
    "soft\xadhyphen",
    "filler\u3164",
    "tags\U000e0041",
    "lone\ud800surrogate",
    "byte\udcff",
)
PLAIN = (
    "llama-sft",
    "前処理",
    "cafe\u0301",
    "👩\u200d🔬 team",
    "🇩🇪",
    "❤\ufe0f",
    "[bold]red[/bold]",
    "%s {0} $HOME `id`",
    "=1+2",
    "back\\slash",
)

OBEYED = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))} | set(
    "\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\xad\u3164"
)
"""What must never reach a terminal within a cell."""


def is_harmless(text: str) -> bool:
    return OBEYED.isdisjoint(text) and not any("\ud800" <= char <= "\udfff" for char in text)
