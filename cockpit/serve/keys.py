"""The keys that may log in, from a file in OpenSSH's format of authorized_keys or from those of the system's users.

Each line may have OpenSSH's options (`from=`, `expiry-time=`, `cert-authority`, `principals=`, `command=`, `no-pty`)
and two of cockpit's: `user="ann,bob"`, the users as whom the key logs in, and `access="read"`, see
`model.access_level`. A line that cannot be understood, or with an unknown option or value, is
ignored: no user can log in by it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Final

import asyncssh
import msgspec
from asyncssh.misc import OptionsParser

from cockpit.errors import CockpitError
from cockpit.model.access_level import AccessLevel, is_level
from cockpit.model.ids import Millis
from cockpit.serve.accounts import Account, find_account

LARGEST: Final = 1 << 20
"""Bytes of a file with keys that are read."""
KNOWN: Final = frozenset(
    {
        *(
            "user",
            "access",
            "from",
            "expiry-time",
            "cert-authority",
            "principals",
            "command",
            "restrict",
            "pty",
            "no-pty",
        ),
        # These are about what no session has.
        *("agent-forwarding", "no-agent-forwarding", "port-forwarding", "no-port-forwarding", "X11-forwarding"),
        *("no-X11-forwarding", "user-rc", "no-user-rc", "permitopen", "permitlisten", "tunnel", "environment"),
        "no-touch-required",
    }
)
"""The options of a key, in the one spelling that is understood; sshd(8) explains all but the first two."""
_EXPIRY: Final = re.compile(r"(\d{8})(\d{4}|\d{6})?(Z?)")


class Line(msgspec.Struct, frozen=True):
    """One key of a file."""

    text: str
    users: tuple[str, ...] = ()
    """The users as whom the key logs in; empty: the line does not say."""
    access: AccessLevel | None = None
    expires_at: float | None = None
    """Seconds since 1970."""
    checks_principal: bool = False
    """Whether it is a certificate authority whose certificates name the users themselves."""


class KeyFile:
    """The keys of one file that the administrator of the server wrote. It is read at each login."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def check(self) -> list[str]:
        """Return what is wrong with lines of the file, as sentences. Raises `CockpitError` if it cannot be used."""
        lines, wrong = parse_lines(self._text())
        problems = [f"{self._path}, line {number}: {what}. The line is ignored." for number, what in wrong]
        if os.geteuid() == 0:
            problems += [
                f'{self._path}: the key {_end_of(each.text)} has no user="…", which a server of root needs.'
                for each in lines
                if not (each.users or each.checks_principal)
            ]
        return problems

    def lines(self, login: str) -> Sequence[Line]:
        """Return the lines that may admit this user. Raises `CockpitError`."""
        lines, _ = parse_lines(self._text())
        # Where the server can become anyone, a key must say as whom it may log in.
        unnamed = os.geteuid() != 0
        return [each for each in lines if (login in each.users if each.users else unnamed or each.checks_principal)]

    def _text(self) -> str:
        return _read(self._path, {0, os.geteuid()})


class UsersKeys:
    """The keys in `~/.ssh/authorized_keys` of each user as whom this process may log in."""

    def check(self) -> list[str]:
        """Return no problems: each file is read when its user logs in."""
        return []

    def lines(self, login: str) -> Sequence[Line]:
        """Return the lines of the user's own file. Raises `CockpitError`."""
        account = find_account(login)
        if account is None or not (account.is_own or os.geteuid() == 0):
            return []
        lines, _ = parse_lines(self._text(account))
        # The file is the user's own, so it cannot admit anybody as another user.
        return [each for each in lines if not each.users or login in each.users]

    def _text(self, account: Account) -> str:
        folder = Path(account.home, ".ssh")
        # As sshd's StrictModes: a user who can write to one of these can become that user.
        for path in (Path(account.home), folder):
            _check_owner(path, path.stat(), {0, account.uid})
        return _read(folder / "authorized_keys", {0, account.uid})


def parse_lines(text: str) -> tuple[list[Line], list[tuple[int, str]]]:
    """Return the keys of a file, and what is wrong with its other lines, by line number."""
    lines, wrong = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            lines.append(_parse(line.strip()))
        except (ValueError, asyncssh.KeyImportError) as error:
            wrong.append((number, str(error)))
    return lines, wrong


def still_valid(lines: Sequence[Line], now: Millis) -> Iterator[Line]:
    """Yield the lines whose time has not passed; asyncssh does not look at it."""
    yield from (each for each in lines if each.expires_at is None or each.expires_at * 1000 > now)


class _Options(OptionsParser):
    def key_after(self, line: str) -> str:
        """Read the options at the beginning of a line and return the rest."""
        return self._parse_options(line)


def _parse(line: str) -> Line:
    options = _Options()
    try:
        asyncssh.import_public_key(line)
    except (asyncssh.KeyImportError, ValueError):
        asyncssh.import_public_key(options.key_after(line))
    # The parser that will decide at the login: what it does not understand is found here, at the start.
    asyncssh.import_authorized_keys(line)
    given = options.options
    if unknown := given.keys() - KNOWN:
        raise ValueError(f"{min(unknown)} is no option that cockpit knows, and it may be a restriction")
    users = [name.strip() for value in _values(given.get("user")) for name in value.split(",")]
    access = _values(given.get("access"))
    if "user" in given and not all(users or [""]):
        raise ValueError('user="" names no user; write user="ann" or user="ann,bob"')
    if "access" in given and (len(access) != 1 or not is_level(access[0])):
        raise ValueError(f"access= is {', '.join(AccessLevel)}, once")
    expiry = _values(given.get("expiry-time"))
    return Line(
        line,
        tuple(users),
        AccessLevel(access[0]) if access else None,
        min(map(_expiry, expiry), default=None),
        "cert-authority" in given and "principals" not in given,
    )


def _values(given: object) -> list[str]:
    return [str(each) for each in given] if isinstance(given, list) else [""] if given is True else []


def _expiry(text: str, zone: tzinfo | None = None) -> float:
    """Return a moment as sshd(8) writes it: YYYYMMDD[HHMM[SS]][Z], in this machine's time without the Z."""
    match = _EXPIRY.fullmatch(text)
    if match is None:
        raise ValueError("expiry-time= is no time such as 20271231 or 202712312359Z")
    day, time, universal = match.groups()
    written = datetime.strptime(day + (time or "").ljust(6, "0"), "%Y%m%d%H%M%S")  # noqa: DTZ007 - the zone follows
    return (written.replace(tzinfo=UTC) if universal else written.replace(tzinfo=zone)).timestamp()


def _end_of(line: str) -> str:
    # The comment, by which people know their keys.
    return f"…{line[-24:]}"


def _read(path: Path, owners: set[int]) -> str:
    """Return the text of a file that only these users can change. Raises `CockpitError`."""
    try:
        # Without waiting, should it be a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - of a descriptor, whose owner is checked
            _check_owner(path, os.fstat(descriptor), owners)
            text = file.read(LARGEST + 1)
    except OSError as error:
        raise CockpitError(f"The keys in {path} cannot be read: {error.strerror}.") from None
    if len(text) > LARGEST:
        raise CockpitError(f"{path} is longer than {LARGEST >> 20} MiB; it is not read.")
    return text.decode(errors="replace")


def _check_owner(path: Path, state: os.stat_result, owners: set[int]) -> None:
    if not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):
        raise CockpitError(f"{path} is no file; it is not read.")
    if state.st_uid not in owners or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CockpitError(f"{path} can be changed by other users, so no key in it is accepted: chmod go-w {path}")


def key_source(file: Path | None) -> KeyFile | UsersKeys:
    """Return the keys of the file, or without one those of the users' own files."""
    return KeyFile(file) if file is not None else UsersKeys()
