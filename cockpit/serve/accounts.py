"""The system account of a session: whether this process may become it, and the environment that its programs get."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from cockpit.errors import CockpitError
from cockpit.model.access_level import ACCESS_VARIABLE, AccessLevel
from cockpit.present.safe import safe

PASSED: Final = ("TERM", "LANG", "COLORTERM")
"""The variables that a client may set."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+:-]{0,63}")
"""Names of terminals and locales; no slash, since TERM and LANG lead to files."""
USUAL_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
USUAL_TERM: Final = "xterm-256color"
_KEPT: Final = re.compile(r"(HOME|PATH|TZ|KUBECONFIG|SLURM_\w+|XDG_\w+|COCKPIT_\w+|PYTHONPATH|VIRTUAL_ENV)")
"""Variables of the server that its own user's sessions get as well."""


class Account(msgspec.Struct, frozen=True):
    """A user of this machine."""

    name: str
    uid: int
    gid: int
    home: str

    @property
    def is_own(self) -> bool:
        """Whether this process runs as the user already."""
        return self.uid == os.geteuid()

    def groups(self) -> list[int]:
        """Return the ids of all groups of the user."""
        return os.getgrouplist(self.name, self.gid)


def own_account() -> Account:
    """Return the account of this process."""
    try:
        return _of(pwd.getpwuid(os.geteuid()))
    except KeyError:
        return Account(str(os.geteuid()), os.geteuid(), os.getegid(), os.environ.get("HOME", "/"))


def find_account(name: str) -> Account | None:
    """Return the account of this name; None if there is none."""
    own = own_account()
    if name == own.name:
        return own
    try:
        return _of(pwd.getpwnam(name))
    except (KeyError, ValueError):  # the other one: a name with a null byte
        return None


def account_for(name: str) -> Account:
    """Return the account of a session. Raises `CockpitError` if this process cannot become it."""
    account = find_account(name)
    if account is None:
        raise CockpitError(f"There is no user {safe(name)} on this machine. Log in as another one: ssh USER@HOST")
    if not account.is_own and os.geteuid() != 0:
        own = own_account().name
        raise CockpitError(
            f"This server runs as {own} and opens sessions of {own} alone. Log in as {own}, or ask an administrator to "
            "run cockpit serve as root."
        )
    return account


def session_environment(
    account: Account, level: AccessLevel, asked: Mapping[str, str], server: Mapping[str, str]
) -> dict[str, str]:
    """Return the whole environment of a session's program.

    `asked`: what the client sent, `server`: the environment of this process.
    """
    if account.is_own:
        env = {name: value for name, value in server.items() if _KEPT.fullmatch(name)}
    else:
        # Another user's session gets nothing of root's but the choice of the cluster.
        env = {"PATH": USUAL_PATH, "HOME": account.home}
        env |= {name: server[name] for name in ("TZ", "COCKPIT_CLUSTER") if name in server}
        folder = f"/run/user/{account.uid}"
        env |= {"XDG_RUNTIME_DIR": folder} if os.path.isdir(folder) else {}  # noqa: PTH112 - one call of the system
    env |= {"USER": account.name, "LOGNAME": account.name, "LANG": "C.UTF-8"}
    env |= {name: value for name, value in asked.items() if name in PASSED and _PLAIN.fullmatch(value)}
    env[ACCESS_VARIABLE] = level.value
    if level is AccessLevel.READ:
        env["COCKPIT_READ_ONLY"] = "true"
    return env


def _of(entry: pwd.struct_passwd) -> Account:
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, entry.pw_dir or "/")
