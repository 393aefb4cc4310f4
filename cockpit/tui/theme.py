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
SIXTEEN = "sixteen"
"""The table of the colours of roles on terminals that show sixteen colours."""
TABLES = (SURFACE, "text", "state", "role", "priority", "hue")
HEAD = frozenset({"name", "title", "dark", "base"})

Colours = dict[str, dict[str, str]]
"""The colour of each role, by table and role."""


class RoleTheme:
    """The contents of a theme file: a colour for every role. `tables` holds all of `TABLES`, with every role; `sixteen`
    has the colours of roles, of whichever table, where there are sixteen."""

    def __init__(
        self,
        name: str,
        title: str,
        dark: bool,
        tables: Mapping[str, Mapping[str, str]],
        sixteen: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.sixteen = sixteen or {}
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
        # The terminal's own colours have no reliable grey; faint text is readable on light and dark grounds.
        if self._is_terminals_own:
            self._styles |= dict.fromkeys(("muted", "unknown", "free"), Style(dim=True))
        # Adding styles is slow in Rich, and the same few pairs are asked for in every cell of every row.
        self._drawn: dict[tuple[str, str], Style] = {}

    @property
    def ansi(self) -> bool:
        """Whether its colours are those sixteen that the user may choose in the terminal."""
        return self.surface["background"].startswith("ansi_")

    @property
    def _is_terminals_own(self) -> bool:
        """Whether it leaves the background, and text on it, to the terminal."""
        return self.surface["background"] == "ansi_default"

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
            drawn = style + self.background(surface)
            if self.ansi and surface == "cursor":
                plain = Style() if self._is_terminals_own else self._styles["text"] + self.background(surface)
                drawn = plain + Style(reverse=not style.reverse, bold=style.bold)
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
    sixteen = {**(base.sixteen if base else {}), **values.get(SIXTEEN, {})}
    themes[values["name"]] = RoleTheme(values["name"], values.get("title", values["name"]), dark, tables, sixteen)


def _errors(values: Mapping[str, object], base: RoleTheme | None, themes: Mapping[str, RoleTheme]) -> list[str]:
    """Return all errors of a theme file; a theme without a base defines the roles itself."""
    wrong = [] if isinstance(values.get("name"), str) else ["name: is missing; give the theme a name"]
    if "base" in values and base is None:
        wrong.append(f"base: there is no theme {safe(str(values['base']))}; there are {', '.join(themes)}")
    for table, roles in values.items():
        if table in HEAD:
            continue
        if table not in (*TABLES, SIXTEEN) or not isinstance(roles, dict):
            wrong.append(f"{safe(table)}: is no table of a theme; those are {', '.join((*TABLES, SIXTEEN))}")
            continue
        known = roles if base is None else base.colours if table == SIXTEEN else base.tables[table]
        wrong += [f"{table}.{safe(role)}: is no role{_hint(role, known)}" for role in roles if role not in known]
        wrong += [
            f"{table}.{role}: {safe(str(each))} is no colour" for role, each in roles.items() if not _is_colour(each)
        ]
        if table == SIXTEEN:
            wrong += [
                f"{table}.{role}: {safe(str(each))} is none of the sixteen colours, such as ansi_green"
                for role, each in roles.items()
                if _is_colour(each) and not str(each).startswith("ansi_")
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
