"""Chooses the colours of a theme for terminals that show 256 or 16 colours.

A terminal would round each colour by itself: two states become one colour, text loses its contrast, and the row under
the cursor looks like any other. Here the colours of a theme are chosen together.

1. The surfaces take the nearest colours that differ from each other.
2. Every role takes the nearest colour that keeps its contrast on all surfaces and is not taken by another colour of its
   table.

Sixteen colours are too few for that: there the theme names the colour of each role.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.color import Color as RichColor
from rich.color import ColorSystem
from rich.console import Console
from textual import constants
from textual.color import Color

from cockpit.tui.theme import SURFACE, TABLES, RoleTheme

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class ColourDepth(IntEnum):
    """The number of colours that a terminal shows."""

    SIXTEEN = 16
    MANY = 256
    ALL = 1 << 24


SIGNS: Final = frozenset({"free", "stranded", "unknown"})
"""Roles of signs that are no text."""
TEXT_CONTRAST, SIGN_CONTRAST = 4.5, 3.0
"""Least contrast of text, and of signs, by WCAG 2."""
LEAST_STEP: Final = 1.1
"""Least contrast between the background and the row under the cursor."""
CUBE: Final = (0, 95, 135, 175, 215, 255)
"""Levels of red, green and blue of the colours 16 to 231, which every terminal shows alike; 232 to 255 are greys."""


class Shade(NamedTuple):
    """A colour that a terminal shows."""

    name: str
    lightness: float
    green_red: float
    blue_yellow: float
    """Coordinates of OKLab, in which equal distances look equal."""
    luminance: float
    """By WCAG 2, from 0 to 1."""


def shade(name: str, rgb: Iterable[int]) -> Shade:
    """Return the colour with these red, green and blue, each from 0 to 255."""
    red, green, blue = (_linear(each / 255) for each in rgb)
    # Björn Ottosson, "A perceptual color space for image processing", 2020.
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    medium = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return Shade(
        name,
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
    )


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


def contrast(one: Shade, other: Shade) -> float:
    """Return the contrast by WCAG 2, from 1 to 21."""
    dark, light = sorted((one.luminance, other.luminance))
    return (light + 0.05) / (dark + 0.05)


@cache
def shades() -> Sequence[Shade]:
    """Return the colours that are the same in every terminal of 256, by the names that make Rich write them."""
    cube = [(red, green, blue) for red in CUBE for green in CUBE for blue in CUBE]
    greys = [(8 + 10 * step,) * 3 for step in range(24)]
    # Rich rounds even some of these: of a light grey it writes the next darker one.
    written = {_written_for(rgb): rgb for rgb in (*cube, *greys)}
    return [shade("#{:02x}{:02x}{:02x}".format(*rgb), shown) for shown, rgb in written.items()]


def _written_for(rgb: tuple[int, ...]) -> tuple[int, ...]:
    """Return the colour that a terminal of 256 colours shows where Rich is given this one."""
    number = RichColor.from_rgb(*rgb).downgrade(ColorSystem.EIGHT_BIT).number
    assert number is not None
    return tuple(RichColor.from_ansi(number).get_truecolor())


def terminal_depth(env: Mapping[str, str]) -> ColourDepth:
    """Return how many colours the terminal of this environment shows, as Textual finds it out."""
    # The setting is any text to mypy; Rich refuses a wrong one, as it does when Textual passes it on.
    wanted: Any = constants.COLOR_SYSTEM
    system = Console(color_system=wanted, force_terminal=True, _environ=env).color_system
    return {"standard": ColourDepth.SIXTEEN, "256": ColourDepth.MANY}.get(system or "", ColourDepth.ALL)


def fitted(theme: RoleTheme, depth: ColourDepth) -> RoleTheme:
    """Return the theme in the colours of this depth. A theme of the terminal's own colours is in them already."""
    if theme.ansi or depth is ColourDepth.ALL:
        return theme
    tables = _sixteen(theme) if depth is ColourDepth.SIXTEEN else _nearest(theme)
    return RoleTheme(theme.name, theme.title, theme.dark, tables)


def _sixteen(theme: RoleTheme) -> dict[str, dict[str, str]]:
    """Return the tables in sixteen colours: one background, as the cursor's row is reversed, and the theme's choice."""
    ground, text = ("ansi_black", "ansi_white") if theme.dark else ("ansi_bright_white", "ansi_black")
    surfaces = dict.fromkeys(theme.surface, ground) | {"line": "ansi_bright_black"}
    return {SURFACE: surfaces} | {
        table: {role: theme.sixteen.get(role, text) for role in theme.tables[table]} for table in TABLES[1:]
    }


def _nearest(theme: RoleTheme) -> dict[str, dict[str, str]]:
    """Return the tables in the nearest of 256 colours that keep their contrast and their differences."""
    surfaces = _surfaces(theme, shades())
    grounds = [each for role, each in surfaces.items() if role != "line"]
    readable = {
        least: [each for each in shades() if min(contrast(each, ground) for ground in grounds) >= least]
        for least in (TEXT_CONTRAST, SIGN_CONTRAST)
    }
    return {SURFACE: {role: each.name for role, each in surfaces.items()}} | {
        table: _roles(theme.tables[table], readable) for table in TABLES[1:]
    }


def _surfaces(theme: RoleTheme, choices: Sequence[Shade]) -> dict[str, Shade]:
    """Return the nearest colours for the surfaces, different ones for those that differ."""
    chosen: dict[str, Shade] = {}
    for role, colour in theme.surface.items():
        wanted = _shade_of(colour)
        taken = {each.name for other, each in chosen.items() if theme.surface[other] != colour}
        free = [each for each in choices if each.name not in taken]
        if role in {"cursor", "marked"}:
            free = [each for each in free if contrast(each, chosen["background"]) > LEAST_STEP]
        chosen[role] = min(free, key=lambda each: _distance(each, wanted))
    return chosen


def _roles(colours: Mapping[str, str], readable: Mapping[float, Sequence[Shade]]) -> dict[str, str]:
    """Return a colour for each role of one table. `readable`: the colours of each least contrast."""
    chosen: dict[str, str] = {}
    for role, colour in colours.items():
        # Roles that share a colour in the theme share one here.
        if colour not in chosen:
            wanted, taken = _shade_of(colour), {*chosen.values()}
            choices = readable[SIGN_CONTRAST if role in SIGNS else TEXT_CONTRAST]
            free = [each for each in choices if each.name not in taken]
            chosen[colour] = min(free, key=lambda each: _distance(each, wanted)).name
    return {role: chosen[colour] for role, colour in colours.items()}


@cache
def _shade_of(colour: str) -> Shade:
    return shade(colour, Color.parse(colour).rgb)


def _distance(one: Shade, other: Shade) -> float:
    """Return how different two colours look. Hue counts twice: a grey that becomes blue means something else."""
    hue = (one.green_red - other.green_red) ** 2 + (one.blue_yellow - other.blue_yellow) ** 2
    return (one.lightness - other.lightness) ** 2 + 4 * hue
