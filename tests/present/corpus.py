"""Text that attacks a terminal, and text that only looks unusual."""

from __future__ import annotations

from tests.hostile import SEEN, UNSEEN

ONLY_UNUSUAL = {"no-break space", "ideographic space", "private use", "unassigned", "noncharacter"}
"""Refused in names, but no terminal obeys them and somebody's text may well hold them."""

HOSTILE = (*(text for what, text in UNSEEN.items() if what not in ONLY_UNUSUAL), "byte\udcff", "\u2066isolate\u2069")

PLAIN = (*SEEN.values(), "llama-sft", "前処理", "cafe\u0301", "👩\u200d🔬 team", "🇩🇪", "❤\ufe0f", "no\xa0break")

OBEYED = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))} | set(
    "\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\xad\u034f\u3164"
)
"""What must never reach a terminal within a cell."""


def is_harmless(text: str) -> bool:
    used = set(text)
    return OBEYED.isdisjoint(used) and not any("\ud800" <= char <= "\udfff" for char in used)
