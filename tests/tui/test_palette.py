"""The colours of every theme on terminals of 16, 256 and all colours."""

from __future__ import annotations

import os
import sys
from itertools import combinations

import pytest
from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.color import Color

from cockpit.tui.palette import ColourDepth, fitted, terminal_depth
from cockpit.tui.theme import TABLES, RoleTheme, load_themes
from cockpit.tui.widgets.table import CURSOR_SIGN
from tests.doubles.terminal import Terminal
from tests.e2e.cockpit_user import ROOT
from tests.tui.test_themes import APART, SEEN_BY, contrast, seen

pytestmark = pytest.mark.req("UI-33")
INSTALLED = "from cockpit.cli import command; command()"
"""What the installed script runs."""

XTERM = {
    "black": "#000000",
    "red": "#cd0000",
    "green": "#00cd00",
    "yellow": "#cdcd00",
    "blue": "#0000ee",
    "magenta": "#cd00cd",
    "cyan": "#00cdcd",
    "white": "#e5e5e5",
    "bright_black": "#7f7f7f",
    "bright_red": "#ff0000",
    "bright_green": "#00ff00",
    "bright_yellow": "#ffff00",
    "bright_blue": "#5c5cff",
    "bright_magenta": "#ff00ff",
    "bright_cyan": "#00ffff",
    "bright_white": "#ffffff",
}
"""The sixteen colours as xterm shows them unless the user has chosen others."""
SURFACES = ("background", "panel", "cursor", "marked")
SIGNS = frozenset({"free", "stranded", "unknown"})
FAINT_OF_SIXTEEN = frozenset({"muted", "stopped", "qos", "hue5", "hue6"})
"""Roles for which sixteen colours on white have no other colour than a sign's."""
THEMES = [name for name, theme in load_themes().items() if not theme.ansi]


def shown(colour: str, depth: ColourDepth) -> str:
    """The colour that the terminal shows where the theme has this one."""
    if depth is ColourDepth.SIXTEEN:
        return XTERM[colour.removeprefix("ansi_")]
    if depth is ColourDepth.ALL:
        return colour
    return RichColor.parse(colour).downgrade(ColorSystem.EIGHT_BIT).get_truecolor().hex


def least_contrast(theme: RoleTheme, role: str, depth: ColourDepth) -> float:
    colour = shown(theme.colours[role], depth)
    return min(contrast(colour, shown(theme.surface[each], depth)) for each in SURFACES)


@pytest.fixture(
    params=[(name, depth) for name in THEMES for depth in ColourDepth], ids=lambda each: f"{each[0]}-{each[1].name}"
)
def palette(request: pytest.FixtureRequest) -> tuple[RoleTheme, ColourDepth]:
    name, depth = request.param
    return fitted(load_themes()[name], depth), depth


def test_signs_and_text_keep_their_contrast_in_every_theme_and_palette(palette: tuple[RoleTheme, ColourDepth]) -> None:
    theme, depth = palette
    signs = SIGNS | FAINT_OF_SIXTEEN if depth is ColourDepth.SIXTEEN else SIGNS
    wanted = {role: 3.0 if role in signs else 4.5 for role in theme.colours}
    faint = {role: least_contrast(theme, role, depth) for role in theme.colours}
    assert {role: round(each, 2) for role, each in faint.items() if each < wanted[role]} == {}


def test_the_row_under_the_cursor_is_seen_in_every_theme_and_palette(palette: tuple[RoleTheme, ColourDepth]) -> None:
    theme, depth = palette
    if depth is ColourDepth.SIXTEEN:
        assert theme.on("cursor", "running").reverse
        assert not theme.on("background", "running").reverse
    else:
        cursor, marked, ground = (shown(theme.surface[each], depth) for each in ("cursor", "marked", "background"))
        assert contrast(cursor, ground) > 1.1
        assert len({cursor, marked, ground}) == 3


@pytest.mark.parametrize("name", THEMES)
def test_colours_that_differ_differ_in_256_colours(name: str) -> None:
    theme = load_themes()[name]
    chosen = fitted(theme, ColourDepth.MANY)
    for table in TABLES[1:]:
        for one, other in combinations(theme.tables[table], 2):
            is_same = theme.tables[table][one] == theme.tables[table][other]
            pair = {shown(chosen.tables[table][each], ColourDepth.MANY) for each in (one, other)}
            assert len(pair) == (1 if is_same else 2), (one, other)


def test_important_states_are_apart_in_256_colours(palette: tuple[RoleTheme, ColourDepth]) -> None:
    theme, depth = palette
    if depth is ColourDepth.SIXTEEN:
        return
    for one, other in combinations(APART, 2):
        rgb = [Color.parse(shown(theme.colours[str(state)], depth)).rgb for state in (one, other)]
        assert sum((a - b) ** 2 for a, b in zip(*rgb, strict=True)) ** 0.5 > 35, (one, other)


@pytest.mark.parametrize("eyes", SEEN_BY)
@pytest.mark.parametrize("depth", [ColourDepth.MANY, ColourDepth.SIXTEEN])
def test_success_and_failure_differ_for_the_eyes_that_a_theme_is_made_for(eyes: str, depth: ColourDepth) -> None:
    colours = fitted(load_themes()[eyes], depth).colours
    shades = (seen(shown(colours[state], depth), eyes) for state in ("running", "error"))
    assert sum((a - b) ** 2 for a, b in zip(*shades, strict=True)) ** 0.5 > 27


@pytest.mark.parametrize(
    ("env", "depth"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, ColourDepth.ALL),
        ({"TERM": "xterm-kitty"}, ColourDepth.MANY),
        ({"TERM": "screen-256color"}, ColourDepth.MANY),
        ({"TERM": "xterm"}, ColourDepth.SIXTEEN),
        ({"TERM": "linux"}, ColourDepth.SIXTEEN),
        ({"TERM": "dumb"}, ColourDepth.ALL),  # it shows none at all
    ],
    ids=str,
)
def test_the_environment_says_how_many_colours_a_terminal_shows(env: dict[str, str], depth: ColourDepth) -> None:
    assert terminal_depth(env) is depth


def test_the_terminals_own_colours_and_all_colours_are_left_as_they_are() -> None:
    themes = load_themes()
    assert all(fitted(themes["ansi"], depth) is themes["ansi"] for depth in ColourDepth)
    assert fitted(themes["dark"], ColourDepth.ALL) is themes["dark"]


@pytest.mark.parametrize(
    ("term", "ground", "is_reversed"),
    [("xterm-256color", "262626", False), ("xterm", "black", True)],
    ids=["256", "16"],
)
def test_the_palette_is_what_the_terminal_is_sent(term: str, ground: str, is_reversed: bool) -> None:
    """Without a word about 24-bit colour, as over most SSH connections: rounded, the row would be dark blue."""
    command = ["env", "-u", "COLORTERM", f"TERM={term}", sys.executable, "-c", INSTALLED, "demo"]
    with Terminal(command, {**os.environ, "PYTHONPATH": str(ROOT)}) as terminal:
        terminal.paint_after(0, CURSOR_SIGN)
        screen = terminal.screen()
    (row,) = (row for row in screen.buffer.values() if row[0].data == CURSOR_SIGN)
    assert (row[30].bg, row[30].reverse) == (ground, is_reversed)
