"""Where an engine's socket, state and configuration are, by the XDG base directory specification."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path

import msgspec

FOLDER = "cockpit-cluster"
SOCKET = "engine.sock"
SYSTEM_CONFIG = Path("/etc") / FOLDER


class EnginePaths(msgspec.Struct, frozen=True):
    """The places of one engine."""

    socket: Path
    state_folder: Path
    config: Path
    """The folder of config.toml and cluster.toml."""

    @property
    def config_files(self) -> tuple[Path, ...]:
        """Strongest first."""
        return tuple(dict.fromkeys((self.config / "config.toml", SYSTEM_CONFIG / "config.toml")))

    @property
    def cluster_file(self) -> Path:
        return self.config / "cluster.toml"

    def with_state_folder(self, folder: str) -> EnginePaths:
        """As the setting `state_folder` says; empty: as it was."""
        return msgspec.structs.replace(self, state_folder=Path(folder)) if folder else self


def paths(uid: int, env: Mapping[str, str]) -> EnginePaths:
    """The engine of one user. Whether the folders are safe to use, `runtime.socket_folder` looks at."""
    home = _home(uid, env)
    return EnginePaths(
        socket=_runtime_folder(uid, env) / SOCKET,
        state_folder=_xdg(env, "XDG_STATE_HOME", home / ".local/state") / FOLDER,
        config=_xdg(env, "XDG_CONFIG_HOME", home / ".config") / FOLDER,
    )


def system_paths() -> EnginePaths:
    """The one engine of the whole machine."""
    return EnginePaths(Path("/run") / FOLDER / SOCKET, Path("/var/lib") / FOLDER, SYSTEM_CONFIG)


def _runtime_folder(uid: int, env: Mapping[str, str]) -> Path:
    """$XDG_RUNTIME_DIR where it is the user's own, as the specification demands: after `su` it is another's."""
    folder = env.get("XDG_RUNTIME_DIR", "")
    if folder.startswith("/") and _owned_folder(folder, uid):
        return Path(folder) / FOLDER
    return Path(f"/tmp/{FOLDER}-{uid}")  # noqa: S108 - its owner and mode are checked before it is used


def _owned_folder(folder: str, uid: int) -> bool:
    try:
        found = Path(folder).stat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == uid


def _xdg(env: Mapping[str, str], variable: str, default: Path) -> Path:
    """The specification: a relative path is invalid and to be ignored."""
    value = env.get(variable, "")
    return Path(value) if value.startswith("/") else default


def _home(uid: int, env: Mapping[str, str]) -> Path:
    home = env.get("HOME", "")
    if home.startswith("/"):
        return Path(home)
    import pwd

    try:
        return Path(pwd.getpwuid(uid).pw_dir)
    except KeyError:
        return Path("/")
