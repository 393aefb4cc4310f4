"""What the composition root gives the application besides the cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cockpit.config.filters import SavedFilters
from cockpit.tui import theme as themes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cockpit.model.ids import Millis
    from cockpit.model.spec import JobSpec
    from cockpit.tui.face import Pace
    from cockpit.tui.theme import RoleTheme


@dataclass(frozen=True, kw_only=True)
class Outside:
    """Time, the person, and how they want their cockpit."""

    now: Callable[[], Millis]
    user: str
    read_jobs: Callable[[str, str, str], list[JobSpec]]
    theme: str = themes.DEFAULT
    themes: Mapping[str, RoleTheme] = field(default_factory=themes.load_themes)
    """All there are, by name."""
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Keys that a person chose, by action, as people write them."""
    filters: SavedFilters = field(default_factory=SavedFilters)
    """The person's own for this cluster."""
    clusters: Mapping[str, str] = field(default_factory=dict)
    """What can be opened instead, by name, with a word about each."""
    cluster: str = ""
    read_only: str = ""
    """Why nothing may be changed; empty when it may."""
    badge: Callable[[], str] = lambda: ""
    pace: Pace | None = None
    """Of a demo."""
    ascii_only: bool = False
