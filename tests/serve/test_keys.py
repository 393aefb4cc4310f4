"""Which user may log in by which line of a file of keys; by a line in doubt, none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import asyncssh
import pytest

from cockpit.errors import CockpitError
from cockpit.model.ids import Millis
from cockpit.serve import accounts, keys
from cockpit.serve.keys import KeyFile, UsersKeys, parse_lines, still_valid

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.req("TR-08")
KEY = asyncssh.generate_private_key("ssh-ed25519", comment="ann's").export_public_key().decode().strip()


def file_of(tmp_path: Path, *lines: str) -> KeyFile:
    path = tmp_path / "keys"
    path.write_text("\n".join(lines))
    path.chmod(0o644)
    return KeyFile(path)


@pytest.mark.parametrize(
    ("options", "admitted"),
    [
        ('user="ann"', {"ann"}),
        ('user="ann,bob"', {"ann", "bob"}),
        ('user="ann",user="bob"', {"ann", "bob"}),
        ('user="ann, bob"', {"ann", "bob"}),
        ("cert-authority", {"ann", "bob", "root"}),
        ('cert-authority,principals="x"', set()),
        ('cert-authority,principals="x",user="bob"', {"bob"}),
        ("", set()),
        ("no-pty", set()),
        ('user="an*"', set()),
        ('user=""', set()),
        ("user", set()),
        ('user="ann,"', set()),
        ('USER="ann"', set()),
        ('user="ann",FROM="10.0.0.1"', set()),
        ('user="ann",verify-required', set()),
        ('user="ann",restrict', {"ann"}),
        ('user="ann",access="read"', {"ann"}),
        ('user="ann",access="root"', set()),
        ('user="ann",access=""', set()),
        ('user="ann",access', set()),
        ('user="ann",access="read",access="admin"', set()),
        ('user="ann",expiry-time="soon"', set()),
        ('user="ann', set()),
        ('user="ann",permitopen="x"', set()),
    ],
)
def test_a_line_admits_only_the_users_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, admitted: set[str]
) -> None:
    source = file_of(tmp_path, f"{options} {KEY}".strip())
    monkeypatch.setattr(keys.os, "geteuid", lambda: 0)
    assert {login for login in ("ann", "bob", "root") if source.lines(login)} == admitted


@pytest.mark.parametrize("text", ["ssh-ed25519", "ssh-ed25519 AAAA", "nonsense", "CN=ann"])
def test_a_line_that_is_no_key_admits_nobody_and_is_named(tmp_path: Path, text: str) -> None:
    source = file_of(tmp_path, "# the keys", "", f'user="ann" {KEY}', text)
    assert [each.users for each in source.lines("ann")] == [("ann",)]
    assert "line 4" in source.check()[0]


@pytest.mark.parametrize(
    ("time", "valid_until"),
    [("20270101Z", 1_798_761_600), ("202701011230Z", 1_798_806_600), ("20270101123015Z", 1_798_806_615)],
)
def test_a_key_is_valid_until_its_time(time: str, valid_until: int) -> None:
    lines, _ = parse_lines(f'expiry-time="{time}" {KEY}')
    assert list(still_valid(lines, Millis(valid_until * 1000 - 1))) == lines
    assert not list(still_valid(lines, Millis(valid_until * 1000)))


def test_a_file_that_others_can_change_admits_nobody(tmp_path: Path) -> None:
    source = file_of(tmp_path, f'user="ann" {KEY}')
    assert source.lines("ann")
    (tmp_path / "keys").chmod(0o664)
    with pytest.raises(CockpitError, match="chmod go-w"):
        source.lines("ann")


def test_a_pipe_in_place_of_the_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "keys", 0o600)
    with pytest.raises(CockpitError, match="is no file"):
        KeyFile(tmp_path / "keys").lines("ann")


@pytest.mark.parametrize("loose", ["", ".ssh", ".ssh/authorized_keys"])
def test_a_users_own_keys_count_only_where_no_other_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loose: str
) -> None:
    own = accounts.Account("ann", os.geteuid(), os.getegid(), str(tmp_path))
    monkeypatch.setattr(keys, "find_account", lambda name: own if name == "ann" else None)
    (tmp_path / ".ssh").mkdir(mode=0o700)
    (tmp_path / ".ssh/authorized_keys").write_text(f'{KEY}\nuser="bob" {KEY}\nuser="ann",access="read" {KEY}\n')
    (tmp_path / ".ssh/authorized_keys").chmod(0o600)
    assert [each.users for each in UsersKeys().lines("ann")] == [(), ("ann",)]
    assert not UsersKeys().lines("bob")
    (tmp_path / loose).chmod(0o770)
    with pytest.raises(CockpitError, match="changed by other users"):
        UsersKeys().lines("ann")
