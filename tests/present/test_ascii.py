from __future__ import annotations

import pytest

from cockpit.model.job import JobState
from cockpit.present.ascii import ascii_text
from cockpit.present.states import GLYPHS
from cockpit.present.units import bar
from cockpit.present.width import width
from tests.present.corpus import HOSTILE

SHAPES = {
    JobState.QUEUED: "Q",
    JobState.RUNNING: "R",
    JobState.STAGING: "S",
    JobState.SUCCEEDED: "+",
    JobState.ERROR: "x",
    JobState.EXPIRED: "!",
    JobState.STOPPED: "#",
    JobState.SUSPENDED: "=",
}


@pytest.mark.req("UI-24")
def test_every_state_has_a_distinct_ascii_symbol() -> None:
    assert {state: ascii_text(GLYPHS[state]) for state in SHAPES} == SHAPES


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("zoë", "zoe"),
        ("exit 3 · held 3:59 more…", "exit 3 . held 3:59 more~"),
        ("训练-2", "????-2"),
        ("╭──╮", "+--+"),
        ("▌ 3–6:bert ⇄", "> 3-6:bert /"),
    ],
)
def test_symbols_have_ascii_replacements(text: str, shown: str) -> None:
    assert ascii_text(text) == shown


@pytest.mark.req("UI-24")
@pytest.mark.parametrize("text", [*HOSTILE, "前処理", "👩‍💻", "e\u0301", "ﬁ"])
def test_replacements_keep_the_width_and_are_ascii(text: str) -> None:
    from cockpit.present.safe import safe

    shown = ascii_text(safe(text))
    assert shown.isascii()
    assert len(shown) == width(safe(text))


@pytest.mark.parametrize("eighths", range(17))
def test_bars_remain_bars_in_ascii(eighths: int) -> None:
    shown = ascii_text(bar(eighths / 16, 2))
    assert set(shown) <= set("=- ")
