from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from cockpit.config.places import paths, system_paths, user_name


def test_xdg_folders_are_followed(tmp_path: Path) -> None:
    env = {"HOME": "/home/a", "XDG_RUNTIME_DIR": str(tmp_path), "XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c"}
    places = paths(os.getuid(), env)
    assert places.socket == tmp_path / "cockpit-cluster/engine.sock"
    assert places.state_folder == Path("/s/cockpit-cluster")
    assert places.config == Path("/c/cockpit-cluster")
    assert places.cluster_file == Path("/c/cockpit-cluster/cluster.toml")
    assert places.config_files == (Path("/c/cockpit-cluster/config.toml"), Path("/etc/cockpit-cluster/config.toml"))


def test_without_xdg() -> None:
    places = paths(1234, {"HOME": "/home/a"})
    assert places.socket == Path("/tmp/cockpit-cluster-1234/engine.sock")
    assert places.state_folder == Path("/home/a/.local/state/cockpit-cluster")
    assert places.config == Path("/home/a/.config/cockpit-cluster")


def test_relative_and_foreign_folders_are_ignored(tmp_path: Path) -> None:
    strange = os.getuid() + 1
    file = tmp_path / "file"
    file.touch()
    for uid, folder in ((strange, tmp_path), (os.getuid(), file), (os.getuid(), tmp_path / "missing")):
        socket = paths(uid, {"HOME": "/h", "XDG_RUNTIME_DIR": str(folder)}).socket
        assert socket == Path(f"/tmp/cockpit-cluster-{uid}/engine.sock")
    env = {"HOME": "/h", "XDG_RUNTIME_DIR": "here", "XDG_STATE_HOME": "there", "XDG_CONFIG_HOME": ""}
    places = paths(os.getuid(), env)
    assert places.socket.parts[1] == "tmp"
    assert places.state_folder == Path("/h/.local/state/cockpit-cluster")
    assert places.config == Path("/h/.config/cockpit-cluster")


def test_without_home_the_password_file_is_read() -> None:
    assert paths(0, {}).config == Path("/root/.config/cockpit-cluster")
    assert paths(3_999_999_999, {}).config == Path("/.config/cockpit-cluster")


def test_the_systems_engine() -> None:
    places = system_paths()
    assert [str(path) for path in (places.socket, places.state_folder, places.config)] == [
        "/run/cockpit-cluster/engine.sock",
        "/var/lib/cockpit-cluster",
        "/etc/cockpit-cluster",
    ]
    assert places.config_files == (Path("/etc/cockpit-cluster/config.toml"),)


def test_a_setting_moves_the_state_folder() -> None:
    places = paths(1234, {"HOME": "/home/a"})
    assert places.with_state_folder("/srv/x").state_folder == Path("/srv/x")
    assert places.with_state_folder("") == places


def test_an_engine_is_configured_once_its_config_file_exists(tmp_path: Path) -> None:
    places = paths(1234, {"HOME": str(tmp_path)})
    assert places.configured is system_paths().configured
    places.config.mkdir(parents=True)
    (places.config / "config.toml").touch()
    assert places.configured


def test_a_slash_at_the_end_of_a_folder_is_not_doubled(tmp_path: Path) -> None:
    env = {"HOME": "/home/a/", "XDG_STATE_HOME": "/s/", "XDG_RUNTIME_DIR": f"{tmp_path}/"}
    places = paths(os.getuid(), env)
    assert (places.state, places.settings) == ("/s/cockpit-cluster", "/home/a/.config/cockpit-cluster")
    assert places.address == f"{tmp_path}/cockpit-cluster/engine.sock"


def test_a_user_without_a_name_is_named_by_the_id(monkeypatch: pytest.MonkeyPatch) -> None:
    assert user_name() == pwd.getpwuid(os.geteuid()).pw_name
    monkeypatch.setattr(os, "geteuid", lambda: 3_999_999)
    assert user_name() == "3999999"
