"""What the composition root gives the application besides the cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from cockpit.config.filters import SavedFilters
from cockpit.tui import theme as themes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cockpit.backends.base import TypedLogin
    from cockpit.model.ids import Millis
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import ClusterRow
    from cockpit.tui.face import Pace
    from cockpit.tui.theme import RoleTheme


class Several(Protocol):
    """Clusters that are watched from the first question on."""

    async def clusters(self) -> list[ClusterRow]:
        """As they stand: none of them is waited for."""
        ...


class NoOthers:
    """Where nobody said which clusters there are."""

    async def clusters(self) -> list[ClusterRow]:
        return []


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
    every: Several = field(default_factory=NoOthers)
    """All clusters that the person uses."""
    read_only: str = ""
    """Why nothing may be changed; empty when it may."""
    badge: Callable[[], str] = lambda: ""
    pace: Pace | None = None
    """Of a demo."""
    login: TypedLogin | None = None
    """How a login to the cluster is typed again; None: it has none."""
    ascii_only: bool = False
