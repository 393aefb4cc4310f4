"""The options that the composition root gives the application besides the backend."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from cockpit.config.filters import SavedFilters
from cockpit.tui import theme as themes
from cockpit.tui.palette import ColourDepth

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cockpit.backends.base import TypedLogin
    from cockpit.model.ids import Millis
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import ClusterRow
    from cockpit.tui.theme import RoleTheme


# Protocols, as these parts come from packages that the terminal UI does not import: demos and the watch over clusters.
class Pace(Protocol):
    """The speed of a demo's virtual clock."""

    paused: bool
    speed: float
    """Virtual seconds per real second."""

    def faster(self) -> None: ...
    def slower(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


class WatchedClusters(Protocol):
    """The clusters of the Clusters view, which are watched from the first call on."""

    @property
    def is_complete(self) -> bool:
        """Whether the open cluster and its members are all clusters there are, as in a demo."""
        ...

    async def clusters(self) -> list[ClusterRow]:
        """Return their present state without waiting for any of them."""
        ...


class NoOthers:
    """An empty list of clusters, where none are configured."""

    is_complete = False

    async def clusters(self) -> list[ClusterRow]:
        return []


@dataclass(frozen=True, kw_only=True)
class AppOptions:
    """The clock, the user, and the user's settings."""

    now: Callable[[], Millis]
    """The cluster's present moment, which in a demo runs faster than the screen."""
    user: str
    """The user as the cluster knows them, for `user:me` and the list's own jobs."""
    read_jobs: Callable[[str, str, str], list[JobSpec]]
    """A function that reads a job file: its name, its text, the folder to which its paths are relative."""
    theme: str = themes.DEFAULT
    themes: Mapping[str, RoleTheme] = field(default_factory=themes.load_themes)
    """All themes, by name."""
    colours: ColourDepth = ColourDepth.ALL
    """How many colours the terminal shows, for which those of the themes are chosen."""
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The user's own keys by action id, written as in `Ctrl-x`."""
    filters: SavedFilters = field(default_factory=SavedFilters)
    """The user's saved filters for this cluster."""
    clusters: Mapping[str, str] = field(default_factory=dict)
    """A description of each cluster that can be opened, by name."""
    cluster: str = ""
    """The name of the open cluster among them."""
    every: WatchedClusters = field(default_factory=NoOthers)
    """All clusters that the user uses, for the Clusters view."""
    read_only: str = ""
    """The reason why nothing may be changed; empty when changes are allowed."""
    badge: Callable[[], str] = lambda: ""
    """A function that returns a word for the top bar, such as `DEMO 10×`; empty: none."""
    pace: Pace | None = None
    """The speed control of a demo's clock; None on a real cluster."""
    login: TypedLogin | None = None
    """The prompt with which the user logs in to the cluster again; None: the cluster needs no login."""
    ascii_only: bool = False
