"""Every setting's default, and the least and the most that it may be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cockpit.config.loading import load_settings
from cockpit.config.members import Members
from cockpit.config.places import paths
from cockpit.config.settings import SETTINGS, Keys, alert_kinds, default_text
from cockpit.errors import SpecErrors
from cockpit.formats.kinds import Reading
from cockpit.model.alerts import AlertKind

DAY = 86_400

DEFAULTS = {
    "hold_window": "4h",
    "time_limit": "1d",
    "grace_period": "30s",
    "keep_history": "90d",
    "keep_logs": "365d",
    "log_limit": "1G",
    "pids_limit": "4096",
    "scratch_size": "1G",
    "plain_processes": "true",
    "podman_containers": "true",
    "patrol_period": "30s",
    "serve_listen": "127.0.0.1:8022",
    "serve_access": "own",
    "serve_sessions": "100",
    "serve_sessions_per_user": "20",
    "serve_idle": "1h",
    "serve_drain": "0s",
    "alert_mail": "/usr/sbin/sendmail -t",
    "alert_smtp_port": "587",
    "alert_smtp_tls": "starttls",
    "alert_mail_kinds": "performance fault suspended waiting exhausted",
    "alert_webhook_kinds": "all",
    "alert_command_kinds": "all",
    "alert_per_job": "10m",
    "alert_per_hour": "60",
    "spot_period": "5s",
    "spot_patience": "2s",
    "price_period": "1m",
    "price_patience": "5s",
    "fraction_fit": "best",
    "invariants": "false",
    "ascii": "false",
    "read_only": "false",
    "ask_every": "10s",
    "patience": "30s",
    "act_patience": "1m",
}
"""As a person writes them; all others are not set."""

BOUNDS = {
    "keep_history": (0, 36_600 * DAY),
    "keep_logs": (DAY, 36_600 * DAY),
    "pids_limit": (16, 4_194_304),
    "patrol_period": (1, DAY),
    "price_period": (1, DAY),
    "price_patience": (1, 60),
    "alert_smtp_port": (1, 65_535),
    "alert_per_hour": (1, 100_000),
    "spot_period": (1, DAY),
    "spot_patience": (1, 60),
}


def read(file: Path, name: str, value: int) -> object:
    file.write_text(f"{name} = {value}\n")
    attribute = next(each.attribute for each in SETTINGS.fields if each.name == name)
    return getattr(load_settings(env={}, files=[file]), attribute)


@pytest.mark.parametrize("setting", SETTINGS.fields, ids=lambda setting: setting.name)
def test_every_setting_has_its_default(setting) -> None:
    assert default_text(setting) == DEFAULTS.get(setting.name, "")


@pytest.mark.parametrize("name", BOUNDS)
def test_a_figure_may_be_the_least_and_the_most_and_no_other(tmp_path: Path, name: str) -> None:
    least, most = BOUNDS[name]
    assert [read(tmp_path / "c.toml", name, each) for each in (least, most)] == [least, most]
    for beyond in (least - 1, most + 1):
        with pytest.raises(SpecErrors, match=name):
            read(tmp_path / "c.toml", name, beyond)


@pytest.mark.parametrize(
    ("line", "keys"), [('cancel = "D"', ("D",)), ('cancel = ["D", "Ctrl-x"]', ("D", "Ctrl-x")), ("cancel = []", ())]
)
def test_an_action_has_a_key_or_a_list_of_them(tmp_path: Path, line: str, keys: tuple[str, ...]) -> None:
    (tmp_path / "c.toml").write_text(f"[keys]\n{line}\n")
    assert load_settings(env={}, files=[tmp_path / "c.toml"]).keys == {"cancel": keys}


@pytest.mark.parametrize("line", ["cancel = 3", 'cancel = ""', 'cancel = ["D", 3]', 'cancel = ["D", ""]'])
def test_an_invalid_key_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "c.toml").write_text(f"[keys]\n{line}\n")
    with pytest.raises(SpecErrors, match=r"keys\.cancel: .*; write a key"):
        load_settings(env={}, files=[tmp_path / "c.toml"])


def test_keys_that_are_no_table_are_refused_with_the_form_to_write(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('keys = "x"\n')
    with pytest.raises(SpecErrors, match=r"keys: is .*; write a table \[keys\]"):
        load_settings(env={}, files=[tmp_path / "c.toml"])


def test_the_schema_of_keys_is_a_key_or_a_list_of_keys() -> None:
    key = {"type": "string", "minLength": 1}
    assert Keys().schema() == {
        "type": "object",
        "additionalProperties": {"anyOf": [key, {"type": "array", "items": key}]},
    }


def test_another_state_folder_leaves_the_other_places() -> None:
    places = paths(1234, {"HOME": "/home/a"})
    moved = places.with_state_folder("/srv/state")
    assert (moved.state_folder, moved.socket, moved.config) == (Path("/srv/state"), places.socket, places.config)
    assert places.with_state_folder("") == places


def test_keys_are_written_as_the_lists_that_are_read(tmp_path: Path) -> None:
    written = Keys().write({"cancel": ("D", "Ctrl-x"), "help": ()})
    assert written == {"cancel": ["D", "Ctrl-x"], "help": []}
    lines = "".join(f"{name} = {keys}\n" for name, keys in written.items())
    (tmp_path / "c.toml").write_text(f"[keys]\n{lines}")
    assert load_settings(env={}, files=[tmp_path / "c.toml"]).keys == {"cancel": ("D", "Ctrl-x"), "help": ()}


def test_wrong_keys_and_clusters_are_read_as_none_so_that_the_rest_is_still_checked() -> None:
    reading = Reading("/etc", "")
    assert Keys().read("x", "keys", reading) == {}
    assert Keys().read({"cancel": 3, "help": "?"}, "keys", reading) == {"cancel": (), "help": ("?",)}
    assert Members().read("lab", "clusters", reading) == {}
    assert [error.partition(": ")[0] for error in reading.errors] == ["keys", "keys.cancel", "clusters"]


ADDRESSES = {
    "http://127.0.0.1:8080": None,
    "https://prices.example/now?x=1": None,
    "ftp://files.example": "is no address such as",
    "http://": "is no address such as",
    "http:///path": "is no address such as",
    "localhost:8080": "is no address such as",
    "http://host:99999": "is no address: ",
    "http://[::1": "is no address: ",
    "http://ann@host": "must not contain a user or a password",
    "http://:secret@host": "must not contain a user or a password",
}
"""What is wrong with each; None: nothing."""


@pytest.mark.parametrize("address", ADDRESSES)
def test_the_address_of_a_service_is_checked_when_it_is_read(tmp_path: Path, address: str) -> None:
    file, wrong = tmp_path / "c.toml", ADDRESSES[address]
    file.write_text(f"spot_address = {address!r}\n")
    if wrong is None:
        assert load_settings(env={}, files=[file]).spot_address == address
    else:
        with pytest.raises(SpecErrors) as refused:
            load_settings(env={}, files=[file])
        assert str(refused.value).startswith(f"{file}: spot_address: {wrong}")


@pytest.mark.parametrize("address", [*ADDRESSES, "", "/run/prices.sock", "prices.json"])
def test_prices_come_from_an_absolute_path_or_an_address(tmp_path: Path, address: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f"price_source = {address!r}\n")
    if ADDRESSES.get(address, "no address") is None or not address or address.startswith("/"):
        assert load_settings(env={}, files=[file]).price_source == address
    else:
        with pytest.raises(SpecErrors, match="price_source: is neither an absolute path nor an address such as http:"):
            load_settings(env={}, files=[file])


def test_a_command_line_with_an_open_quote_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('alert_command = "mail \'ann"\n')
    with pytest.raises(SpecErrors, match="alert_command: is no command line: No closing quotation"):
        load_settings(env={}, files=[file])


@pytest.mark.req("EL-13")
@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ('alert_mail_kinds = "fault rain"', "alert_mail_kinds: rain is no kind of alert; write all, or some of "),
        ('alert_url = "https://lab.example.org/jobs"', "alert_url: has no {job}"),
        ('alert_url = "ftp://lab/{job}"', "alert_url: is no address"),
    ],
)
def test_kinds_and_addresses_of_alerts_are_checked(tmp_path: Path, line: str, wrong: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(line)
    with pytest.raises(SpecErrors, match=re.escape(wrong)):
        load_settings(env={}, files=[file])


@pytest.mark.req("EL-13")
def test_kinds_of_alerts_are_some_all_or_none() -> None:
    assert alert_kinds("fault reclaim") == {AlertKind.FAULT, AlertKind.RECLAIM}
    assert (alert_kinds("all"), alert_kinds("")) == (set(AlertKind), set())
