"""Every setting: its name in config.toml, how it is read, what it means. One is added here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import msgspec

from cockpit.formats.toml import duration_seconds, flag, host_name, memory_mib, one_of, whole
from cockpit.model.spec import DAY_SECONDS, DEFAULT_GRACE_SECONDS

HOUR_SECONDS = 3600


class FractionFit(StrEnum):
    """How shares of a card are placed."""

    BEST = "best"
    """Where the least is left over."""
    FGD = "fgd"
    """Where the least of what jobs ask for becomes impossible (fragmentation gradient descent)."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for this engine and its faces, all layers merged."""

    cluster: str = ""
    state_folder: str = ""
    hold_window_seconds: int = 4 * HOUR_SECONDS
    time_limit_seconds: int = DAY_SECONDS
    grace_seconds: int = DEFAULT_GRACE_SECONDS
    keep_history_seconds: int = 90 * DAY_SECONDS
    pids_limit: int = 4096
    scratch_mib: int = 1024
    fraction_fit: FractionFit = FractionFit.BEST
    invariants: bool = False


class Setting(msgspec.Struct, frozen=True):
    """One line of config.toml."""

    name: str
    """In config.toml; `COCKPIT_<NAME>` in the environment."""
    field: str
    """Of `Settings`."""
    read: Callable[[object], object]
    default: str
    """As one would write it."""
    meaning: str

    @property
    def variable(self) -> str:
        return f"COCKPIT_{self.name.upper()}"


def absolute_path(value: object) -> str:
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value:
        raise ValueError(f"must be an absolute path, not {value!r}")
    return value


SETTINGS = (
    Setting("cluster", "cluster", host_name, "", "the cluster that commands and the cockpit open, unless -c names one"),
    Setting(
        "state_folder",
        "state_folder",
        absolute_path,
        "",
        "where the engine keeps its journal and its containers; on a local disk; "
        "empty: $XDG_STATE_HOME/cockpit-cluster, for the system engine /var/lib/cockpit-cluster",
    ),
    Setting("hold_window", "hold_window_seconds", duration_seconds(0), "4h", "how long a failed container is kept"),
    Setting("time_limit", "time_limit_seconds", duration_seconds(1), "24h", "of a job that names none"),
    Setting(
        "grace_period", "grace_seconds", duration_seconds(0), "30s", "between the request to end and the kill, likewise"
    ),
    Setting(
        "keep_history",
        "keep_history_seconds",
        duration_seconds(0),
        "90d",
        "how long events stay in the journal before they are archived to files",
    ),
    Setting("pids_limit", "pids_limit", whole(16, 1 << 22), "4096", "processes and threads in one container"),
    Setting("scratch_size", "scratch_mib", memory_mib, "1G", "of a container's own /tmp, which is held in memory"),
    Setting(
        "fraction_fit",
        "fraction_fit",
        one_of(FractionFit),
        "best",
        "where a share of a card goes: best (fullest card that fits) or fgd (least fragmentation)",
    ),
    Setting(
        "invariants",
        "invariants",
        flag,
        "false",
        "check the whole state after every event: slow, for finding faults in cockpit itself",
    ),
)
