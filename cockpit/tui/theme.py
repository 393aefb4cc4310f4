"""Colour roles from `themes/*.toml`, for the two places that need colours: Textual's stylesheets and drawn spans."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

from rich.style import Style
from textual.theme import Theme as TextualTheme

from cockpit.errors import CockpitError
from cockpit.resources import theme_files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

DEFAULT = "dark"
_ROLE_TABLES = ("text", "state", "role", "priority")


class RoleTheme:
    """One theme file: a colour for every role."""

    def __init__(self, name: str, title: str, dark: bool, colours: dict[str, str], surface: dict[str, str]) -> None:
        self.name = name
        self.title = title
        self.dark = dark
        self.colours = colours
        self.surface = surface
        self._styles = {role: Style(color=_rich(colour)) for role, colour in colours.items()}
        self._styles["strong"] += Style(bold=True)

    @property
    def ansi(self) -> bool:
        """Made of the terminal's own colours."""
        return self.surface["background"].startswith("ansi_")

    def style(self, role: str) -> Style:
        """How a span of this role is drawn; an unknown role is plain text."""
        return self._styles.get(role) or self._styles["text"]

    def background(self, name: str) -> Style:
        """A surface (`background`, `panel`, `cursor`, `marked`) as the ground of drawn text."""
        return Style(bgcolor=_rich(self.surface[name]))

    def variables(self) -> dict[str, str]:
        """What the stylesheets name beyond Textual's own colours."""
        return {"rule": self.surface["line"], "muted": self.colours["muted"]}

    def for_textual(self) -> TextualTheme:
        """The same theme for stylesheets: `$primary` is the accent, `$surface` the panel."""
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


def load_themes(user_folder: Path | None = None) -> dict[str, RoleTheme]:
    """Every theme by name: those that ship, then the user's own, which may replace them. Raises `CockpitError` where a
    file is no theme.
    """
    texts = [(file.name, file.read_text(encoding="utf-8")) for file in theme_files()]
    if user_folder is not None and user_folder.is_dir():
        texts += [(str(file), file.read_text(encoding="utf-8")) for file in sorted(user_folder.glob("*.toml"))]
    return {theme.name: theme for theme in _read_all(texts)}


def _read_all(texts: Iterable[tuple[str, str]]) -> Iterable[RoleTheme]:
    for source, text in texts:
        try:
            values = tomllib.loads(text)
            colours = {role: colour for table in _ROLE_TABLES for role, colour in values[table].items()}
            yield RoleTheme(values["name"], values["title"], values["dark"], colours, values["surface"])
        except (tomllib.TOMLDecodeError, KeyError) as error:
            raise CockpitError(f"{source} is no theme: {error}. Compare it with themes/dark.toml.") from error


def _rich(colour: str) -> str:
    return colour.removeprefix("ansi_")
