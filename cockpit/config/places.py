"""Finds the user's name and the paths of an engine's socket, state and configuration, by the XDG base directory
specification.

Every command loads this module, so it imports little. The paths are plain strings, because importing pathlib takes
longer than connecting to an engine.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FOLDER = "cockpit-cluster"
SOCKET = "engine.sock"
SYSTEM_CONFIG = f"/etc/{FOLDER}"


class EnginePaths(msgspec.Struct, frozen=True):
    """The paths of one engine."""

    address: str
    """Path of its socket."""
    state: str
    """Folder of its journal and containers."""
    settings: str
    """Folder of config.toml and cluster.toml."""

    @property
    def socket(self) -> Path:
        return _path(self.address)

    @property
    def state_folder(self) -> Path:
        return _path(self.state)

    @property
    def config(self) -> Path:
        """The folder of config.toml and cluster.toml."""
        return _path(self.settings)

    @property
    def config_files(self) -> tuple[Path, ...]:
        """Paths of the config files; the first counts most."""
        return tuple(map(_path, self._config_files))

    @property
    def configured(self) -> bool:
        """Whether any config.toml exists."""
        return any(map(os.path.exists, self._config_files))

    @property
    def cluster_file(self) -> Path:
        return self.config / "cluster.toml"

    def with_state_folder(self, folder: str) -> EnginePaths:
        """Return the paths with the state folder of the setting `state_folder`; unchanged if it is empty."""
        return msgspec.structs.replace(self, state=folder) if folder else self

    @property
    def _config_files(self) -> tuple[str, ...]:
        # The system engine's own folder is the machine's: each file counts once.
        return tuple(dict.fromkeys(f"{folder}/config.toml" for folder in (self.settings, SYSTEM_CONFIG)))


def paths(uid: int, env: Mapping[str, str]) -> EnginePaths:
    """Return the paths of a user's own engine; `runtime.socket_folder` checks whether the folders are safe to use."""
    home = _home(uid, env)
    return EnginePaths(
        address=f"{_runtime_folder(uid, env)}/{SOCKET}",
        state=f"{_xdg(env, 'XDG_STATE_HOME', f'{home}/.local/state')}/{FOLDER}",
        settings=f"{_xdg(env, 'XDG_CONFIG_HOME', f'{home}/.config')}/{FOLDER}",
    )


def system_paths() -> EnginePaths:
    """Return the paths of the machine-wide engine."""
    return EnginePaths(f"/run/{FOLDER}/{SOCKET}", f"/var/lib/{FOLDER}", SYSTEM_CONFIG)


def _path(text: str) -> Path:
    from pathlib import Path

    return Path(text)


def _runtime_folder(uid: int, env: Mapping[str, str]) -> str:
    """Return the folder in XDG_RUNTIME_DIR if that belongs to the user; after `su` it is another user's."""
    folder = env.get("XDG_RUNTIME_DIR", "")
    if folder.startswith("/") and _owned_folder(folder, uid):
        return f"{folder.rstrip('/')}/{FOLDER}"
    # XDG's own folder is missing after su, in cron and in containers.
    return f"/tmp/{FOLDER}-{uid}"  # noqa: S108 - its owner and mode are checked before it is used


def _owned_folder(folder: str, uid: int) -> bool:
    try:
        status = os.stat(folder)
    except OSError:
        return False
    # Root may use a folder of any user, so that access alone would not tell.
    return stat.S_ISDIR(status.st_mode) and status.st_uid == uid


def _xdg(env: Mapping[str, str], variable: str, default: str) -> str:
    """Return the variable's folder, or the default; by the specification a relative path is invalid and ignored."""
    value = env.get(variable, "")
    return value.rstrip("/") if value.startswith("/") else default


def user_name() -> str:
    """Return the name of the user who runs this process; the user id if it has no name."""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _home(uid: int, env: Mapping[str, str]) -> str:
    """Return the home folder without a slash at its end, so that `/` becomes an empty text."""
    home = env.get("HOME", "")
    if home.startswith("/"):
        return home.rstrip("/")
    import pwd

    try:
        return pwd.getpwuid(uid).pw_dir.rstrip("/")
    except KeyError:
        return ""
