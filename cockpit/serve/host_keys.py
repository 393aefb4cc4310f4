"""The host key of the SSH server: read from a file that only the server's user can read, or made at the first start."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import asyncssh

from cockpit.errors import CockpitError

ALGORITHM = "ssh-ed25519"
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def host_key(path: Path) -> asyncssh.SSHKey:
    """Return the host key in the file, which is made if it does not exist. Raises `CockpitError`."""
    if not path.exists():
        _make(path)
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            text = file.read()
    except OSError as error:
        raise CockpitError(
            f"The host key {path} cannot be read: {error.strerror}. Name another with --host-key."
        ) from None
    if state.st_mode & OTHERS:
        raise CockpitError(f"The host key {path} can be read by other users: chmod 600 {path}")
    if state.st_uid not in {0, os.geteuid()}:
        raise CockpitError(
            f"The host key {path} belongs to another user, who could replace it; name another with --host-key."
        )
    try:
        return asyncssh.import_private_key(text)
    except (asyncssh.KeyImportError, ValueError) as error:
        raise CockpitError(
            f"{path} is no private key without a passphrase ({error}). Make one: ssh-keygen -t ed25519 -N '' -f {path}"
        ) from None


def _make(path: Path) -> None:
    key = asyncssh.generate_private_key(ALGORITHM, comment="cockpit serve")
    # Under another name first: two servers that start at once must not read half a key.
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - of a descriptor, whose mode cannot be changed in between
            file.write(key.export_private_key())
            file.flush()
            os.fsync(file.fileno())
        # `link` and not `rename`: the key of the server that was first stays.
        try:
            os.link(unfinished, path)
        except FileExistsError:
            return
        path.with_name(f"{path.name}.pub").write_bytes(key.export_public_key())
    except OSError as error:
        raise CockpitError(
            f"The host key {path} cannot be made: {error.strerror}. Name another file with --host-key."
        ) from None
    finally:
        unfinished.unlink(missing_ok=True)
