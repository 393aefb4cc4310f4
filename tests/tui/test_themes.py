from __future__ import annotations

import tomllib
from itertools import combinations
from pathlib import Path

import pytest
from textual.color import Color

from cockpit.errors import SpecErrors
from cockpit.model.job import JobState
from cockpit.resources import theme_files
from cockpit.tui.theme import TABLES, RoleTheme, load_themes

FILES = {file.name: tomllib.loads(file.read_text(encoding="utf-8")) for file in theme_files()}
ROLES = {table: set(FILES["dark.toml"][table]) for table in TABLES}
SHAPES_ONLY = {"free", "stranded", "unknown"}
"""Roles of empty cells and of what cannot be done: quieter than text."""
TRUE_COLOURS = [name for name, theme in load_themes().items() if not theme.ansi]
APART = [JobState.QUEUED, JobState.RUNNING, JobState.STAGING, JobState.SUSPENDED, JobState.ERROR, JobState.EXPIRED]


def luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    parts = [part / 255 for part in Color.parse(colour).rgb]
    red, green, blue = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.fixture(params=TRUE_COLOURS)
def theme(request: pytest.FixtureRequest) -> RoleTheme:
    return load_themes()[request.param]


@pytest.mark.req("UI-25")
@pytest.mark.parametrize("name", FILES)
def test_every_theme_that_ships_has_every_role(name: str) -> None:
    assert {table: set(FILES[name][table]) for table in TABLES} == ROLES


@pytest.mark.req("UI-25")
def test_themes_include_a_dark_a_light_and_the_terminals_own() -> None:
    themes = load_themes()
    assert (themes["dark"].dark, themes["light"].dark) == (True, False)
    assert [name for name, each in themes.items() if each.ansi] == ["ansi"]


def test_every_state_has_a_colour() -> None:
    assert {str(state) for state in JobState} == ROLES["state"]


@pytest.mark.req("UI-25")
@pytest.mark.parametrize("surface", ["background", "panel", "cursor", "marked"])
def test_text_is_readable_on_every_background(theme: RoleTheme, surface: str) -> None:
    faint = {
        role: round(contrast(colour, theme.surface[surface]), 2)
        for role, colour in theme.colours.items()
        if role not in SHAPES_ONLY and contrast(colour, theme.surface[surface]) < 4.5
    }
    assert faint == {}


def test_muted_text_is_still_visible(theme: RoleTheme) -> None:
    for role in SHAPES_ONLY:
        assert contrast(theme.colours[role], theme.surface["background"]) >= 3


def test_the_cursor_row_has_a_different_background(theme: RoleTheme) -> None:
    assert contrast(theme.surface["cursor"], theme.surface["background"]) > 1.1


def test_important_states_have_distinct_colours(theme: RoleTheme) -> None:
    for one, other in combinations(APART, 2):
        rgb = [Color.parse(theme.colours[str(state)]).rgb for state in (one, other)]
        assert sum((a - b) ** 2 for a, b in zip(*rgb, strict=True)) ** 0.5 > 35, (one, other)


SEEN_BY = {
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
"""Linear RGB as such eyes see it (Machado, Oliveira, Fernandes 2009, severity 1)."""


def seen(colour: str, eyes: str) -> list[float]:
    light = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in Color.parse(colour).normalized
    ]
    mixed = [min(max(sum(a * b for a, b in zip(row, light, strict=True)), 0), 1) for row in SEEN_BY[eyes]]
    return [255 * (12.92 * each if each <= 0.0031308 else 1.055 * each ** (1 / 2.4) - 0.055) for each in mixed]


@pytest.mark.req("UI-25")
@pytest.mark.parametrize("eyes", SEEN_BY)
@pytest.mark.parametrize(
    "roles", [APART, ["held", "tight", "idle", "drained"], [f"hue{number}" for number in range(8)]], ids=str
)
def test_colours_are_distinct_for_the_colour_vision_a_theme_is_made_for(eyes: str, roles: list[str]) -> None:
    colours = load_themes()[eyes].colours
    for one, other in combinations(map(str, roles), 2):
        shades = seen(colours[one], eyes), seen(colours[other], eyes)
        assert sum((a - b) ** 2 for a, b in zip(*shades, strict=True)) ** 0.5 > 27, (one, other)


@pytest.mark.req("UI-25")
def test_the_high_contrast_theme_has_high_contrast() -> None:
    theme = load_themes()["high-contrast"]
    ground = theme.surface["background"]
    assert min(contrast(theme.colours[role], ground) for role in theme.colours.keys() - SHAPES_ONLY) > 7


@pytest.mark.req("UI-25")
def test_the_terminals_own_colours_reverse_the_cursors_row() -> None:
    theme = load_themes()["ansi"]
    assert theme.on("cursor", "running").reverse
    assert not theme.on("background", "running").reverse
    assert all(colour.startswith("ansi_") for colour in theme.colours.values())


def write(folder: Path, text: str) -> Path:
    (folder / "mine.toml").write_text(text)
    return folder


@pytest.mark.req("UI-25")
def test_a_user_theme_contains_only_the_differences(tmp_path: Path) -> None:
    themes = load_themes(write(tmp_path, 'name = "mine"\nbase = "light"\n[text]\naccent = "#123456"\n'))
    mine, light = themes["mine"], themes["light"]
    assert (mine.colours["accent"], mine.dark) == ("#123456", False)
    assert mine.colours | {"accent": ""} == light.colours | {"accent": ""}


def test_a_user_theme_may_replace_a_shipped_one(tmp_path: Path) -> None:
    themes = load_themes(write(tmp_path, 'name = "dark"\n[surface]\nbackground = "#000000"\n'))
    assert themes["dark"].surface["background"] == "#000000"
    assert len(themes) == len(load_themes())


@pytest.mark.req("UI-25")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name = ", "is no TOML"),
        ("[text]\n", "name: is missing"),
        ('name = "m"\nbase = "drak"\n', "base: there is no theme drak"),
        ('name = "m"\n[text]\naccnt = "#123456"\n', "text.accnt: is no role; did you mean accent?"),
        ('name = "m"\n[text]\naccent = "blau"\n', "text.accent: blau is no colour"),
        ('name = "m"\n[colours]\na = "#123456"\n', "colours: is no table of a theme"),
    ],
)
def test_an_invalid_theme_is_reported_with_its_file(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(SpecErrors) as raised:
        load_themes(write(tmp_path, text))
    assert f"{tmp_path / 'mine.toml'}: {sentence}" in str(raised.value)
