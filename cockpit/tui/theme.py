"""Reads themes from `themes/*.toml` and gives their colours to Textual's stylesheets and to drawn spans."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.style import Style
from textual.color import Color, ColorParseError
from textual.theme import Theme as TextualTheme

from cockpit.errors import SpecErrors
from cockpit.present.log_lines import ROLE
from cockpit.present.nearest import nearest
from cockpit.present.safe import safe
from cockpit.resources import theme_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DEFAULT, ANSI = "dark", "ansi"
SURFACE = "surface"
TABLES = (SURFACE, "text", "state", "role", "priority", "hue")
HEAD = frozenset({"name", "title", "dark", "base"})

Colours = dict[str, dict[str, str]]
"""The colour of each role, by table and role."""


class RoleTheme:
    """The contents of a theme file: a colour for every role. `tables` holds all of `TABLES`, with every role."""

    def __init__(self, name: str, title: str, dark: bool, tables: Mapping[str, Mapping[str, str]]) -> None:
        self.name = name
        self.title = title
        self.dark = dark
        self.tables = tables
        self.surface = tables[SURFACE]
        self.colours = {role: colour for table in TABLES[1:] for role, colour in tables[table].items()}
        self._styles = {role: Style(color=_rich(colour)) for role, colour in self.colours.items()}
        # Weight tells apart what a theme may give one colour: themes have colours only, weights are the same in all.
        self._styles["strong"] += Style(bold=True)
        self._styles["accent"] += Style(bold=True)
        self._styles["bright"] = self._styles["strong"]
        self._styles["picked"] = self._styles["strong"] + Style(reverse=True)
        # The sixteen colours of a terminal have no reliable grey; faint text is readable on light and dark ones.
        if self.ansi:
            self._styles |= dict.fromkeys(("muted", "unknown", "free"), Style(dim=True))
        # Adding styles is slow in Rich, and the same few pairs are asked for in every cell of every row.
        self._drawn: dict[tuple[str, str], Style] = {}

    @property
    def ansi(self) -> bool:
        """Whether it uses the terminal's own colours."""
        return self.surface["background"].startswith("ansi_")

    def style(self, role: str) -> Style:
        """Return the style of a span of this role; an unknown role is plain text."""
        if role.startswith(ROLE):
            return _style_of_log(role)
        return self._styles.get(role) or self._styles["text"]

    def on(self, surface: str, role: str) -> Style:
        """Return the style of a span of this role on a surface.

        With the terminal's own colours the cursor's row is reversed: no other background is readable on every terminal.
        """
        if role.startswith(ROLE):
            return _style_of_log(role) + self.background(surface)
        drawn = self._drawn.get((surface, role))
        if drawn is None:
            style = self.style(role)
            # A span that is reversed itself has to stand out in the reversed row.
            reversed_row = self.ansi and surface == "cursor"
            drawn = (
                Style(reverse=not style.reverse, bold=style.bold) if reversed_row else style + self.background(surface)
            )
            self._drawn[surface, role] = drawn
        return drawn

    def background(self, name: str) -> Style:
        """Return the style with the colour of a surface (`background`, `panel`, `cursor`, `marked`) behind text."""
        return Style(bgcolor=_rich(self.surface[name]))

    def variables(self) -> dict[str, str]:
        """Return the variables of the stylesheets beyond Textual's own colours."""
        ground, rule, muted = self.surface["background"], self.surface["line"], self.colours["muted"]
        bars = dict.fromkeys(
            ("scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active"), ground
        )
        return {
            "rule": rule,
            "muted": muted,
            "scrollbar": rule,
            "scrollbar-hover": muted,
            "scrollbar-active": muted,
            "scrollbar-corner-color": ground,
            "block-cursor-background": self.surface["cursor"],
            "block-cursor-foreground": self.colours["strong"],
            "input-selection-background": self.surface["marked"],
            **bars,
        }

    def for_textual(self) -> TextualTheme:
        """Return the theme for stylesheets: `$primary` is the accent, `$surface` the panel."""
        return TextualTheme(
            name=self.name,
            primary=self.colours["accent"],
            secondary=self.colours["link"],
            warning=self.colours["warning"],
            error=self.colours["danger"],
            success=self.colours["ok"],
            accent=self.colours["accent"],
            foreground=self.colours["text"],
            background=self.surface["background"],
            surface=self.surface["panel"],
            panel=self.surface["panel"],
            dark=self.dark,
            variables=self.variables(),
        )


@lru_cache(maxsize=1024)
def _style_of_log(role: str) -> Style:
    """Return the style of a span of a log. A log may use any number of colours, so the cache is limited."""
    return Style.parse(role.removeprefix(ROLE))


def load_themes(user_folder: Path | None = None) -> dict[str, RoleTheme]:
    """Return all themes by name: those that ship, then the user's own, which may replace them.

    A user's theme takes missing colours from its `base`, by default `dark`. Raises `SpecErrors` with all errors of all
    files.
    """
    errors: list[str] = []
    themes: dict[str, RoleTheme] = {}
    # Shipped themes first: a user's theme may be based on one, or have its name and replace it.
    for file in theme_files():
        _add(themes, file.name, file.read_text(encoding="utf-8"), errors)
    if user_folder is not None and user_folder.is_dir():
        for path in sorted(user_folder.glob("*.toml")):
            _add(themes, str(path), path.read_text(encoding="utf-8", errors="replace"), errors)
    if errors:
        raise SpecErrors(errors)
    return themes


def _add(themes: dict[str, RoleTheme], source: str, text: str, errors: list[str]) -> None:
    """Read one theme file into `themes`, or add what is wrong with it to `errors`."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        errors.append(f"{source}: is no TOML: {error}")
        return
    base = themes.get(values.get("base", DEFAULT))
    wrong = _errors(values, base, themes)
    # A theme with an error is left out, and the next file read: the user gets the errors of all files at once.
    if wrong:
        errors += [f"{source}: {each}" for each in wrong]
        return
    tables = {table: {**(base.tables[table] if base else {}), **values.get(table, {})} for table in TABLES}
    dark = values.get("dark", base.dark if base else True)
    themes[values["name"]] = RoleTheme(values["name"], values.get("title", values["name"]), dark, tables)


def _errors(values: Mapping[str, object], base: RoleTheme | None, themes: Mapping[str, RoleTheme]) -> list[str]:
    """Return all errors of a theme file; a theme without a base defines the roles itself."""
    wrong = [] if isinstance(values.get("name"), str) else ["name: is missing; give the theme a name"]
    if "base" in values and base is None:
        wrong.append(f"base: there is no theme {safe(str(values['base']))}; there are {', '.join(themes)}")
    for table, roles in values.items():
        if table in HEAD:
            continue
        if table not in TABLES or not isinstance(roles, dict):
            wrong.append(f"{safe(table)}: is no table of a theme; those are {', '.join(TABLES)}")
            continue
        known = base.tables[table] if base is not None else roles
        wrong += [f"{table}.{safe(role)}: is no role{_hint(role, known)}" for role in roles if role not in known]
        wrong += [
            f"{table}.{role}: {safe(str(each))} is no colour" for role, each in roles.items() if not _is_colour(each)
        ]
    return wrong


def _hint(word: str, known: Mapping[str, str]) -> str:
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else f"; those are {', '.join(known)}"


def _is_colour(text: object) -> bool:
    try:
        Color.parse(str(text))
    except ColorParseError:
        return False
    return True


def _rich(colour: str) -> str:
    return colour.removeprefix("ansi_")
