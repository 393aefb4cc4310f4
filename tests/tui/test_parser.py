"""What the terminal sends as keys: an Escape is kept, whatever comes right behind it."""

from __future__ import annotations

import pytest

from cockpit.tui.driver import EscapeKeepingParser


def keys_of(sent: str) -> list[str]:
    parser = EscapeKeepingParser()
    events = list(parser.feed(sent))
    # As after the delay behind which an Escape is no longer the start of a sequence.
    if parser._timeout_time is not None:
        parser._timeout_time = 0.0
        events += list(parser.tick())
    return [event.key for event in events]


@pytest.mark.req("UI-12", "UI-21")
@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("\x1b", ["escape"]),
        ("\x1b:", ["escape", "colon"]),
        ("\x1b:wq\r", ["escape", "colon", "w", "q", "enter"]),
        ("\x1b.", ["escape", "full_stop"]),
        ("\x1b\x1d", ["escape", "ctrl+right_square_bracket"]),
        ("\x1bz", ["alt+z"]),
        ("\x1b[A", ["up"]),
    ],
)
def test_an_escape_before_another_key_is_kept(sent: str, keys: list[str]) -> None:
    assert keys_of(sent) == keys
