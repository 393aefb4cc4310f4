"""An image that podman or docker has on this node. Where podman may not make its containers, it is taken over as a root
file system: what `export` writes of a container that is made of it and never run. Its store is that of the engine's
user, and nothing is ever pulled.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess

from cockpit.runtime.containers.shim import linux, untar
from cockpit.runtime.containers.shim.metering import FetchError
from cockpit.runtime.containers.shim.podman import PROGRAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from cockpit.runtime.containers.shim.metering import Measure, Meter, Order

_PROGRAMS = (PROGRAM, "docker")
_SECONDS = 60
"""Time limit of one command of podman or docker, except the export itself."""
_NEVER_RUN = "true"
"""A container must have a command."""


def measure(order: Order, _meter: Meter) -> Measure:
    """Return the image's id, its size, its settings for containers, and whether podman makes them. Raises
    FetchError."""
    _hide_mounts(order)
    program, image = _find_image(order["source"])
    # podman writes the digest alone, docker `sha256:` in front of it.
    key = str(image["Id"]).rpartition(":")[2]
    config = image.get("Config") or {}
    return {
        "key": key,
        "size": int(image["Size"]),
        "env": _variables(config.get("Env")),
        "entrypoint": list(config.get("Entrypoint") or ()),
        "cmd": list(config.get("Cmd") or ()),
        "workdir": str(config.get("WorkingDir") or ""),
        "podman": order["podman"] and program == PROGRAM,
    }


def copy(order: Order, meter: Meter) -> int:
    """Copy the image into the existing folder `target`, and return the bytes of its files. Raises FetchError, DiskFull
    or OSError."""
    _hide_mounts(order)
    program, _ = _find_image(order["source"])
    with _container(program, order) as name:
        export = subprocess.Popen([program, "export", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert export.stdout is not None
        try:
            size = untar.unpack(order, meter, _Stream(export.stdout.fileno(), meter))
        finally:
            # First: an `export` that writes into a full pipe would never end.
            export.stdout.close()
            export.wait(_SECONDS)
    return size


def _hide_mounts(order: Order) -> None:
    """Hide podman's mounts from all other processes; an ordinary user's podman does so itself."""
    if not order["rootless"]:
        linux.unshare(linux.CLONE_NEWNS)
        linux.mount("none", "/", None, linux.MS_REC | linux.MS_SLAVE)


class _Stream:
    """The output of `export`, counted."""

    def __init__(self, fd: int, meter: Meter) -> None:
        self._fd = fd
        self._meter = meter

    def read(self, size: int = -1) -> bytes:
        parts: list[bytes] = []
        left = size if size >= 0 else untar.PIECE
        while left and (piece := os.read(self._fd, left)):
            parts.append(piece)
            left -= len(piece)
            self._meter.count(len(piece))
        return b"".join(parts)


@contextlib.contextmanager
def _container(program: str, order: Order) -> Iterator[str]:
    """Create a container of the image, and remove it afterwards; one that an earlier try has left is removed first."""
    name = f"cockpit-export-{order['key'][:24]}"
    # A fetch that was killed during the export leaves its container.
    _run(program, "rm", "--force", name)
    _output_of(program, "create", "--pull=never", "--name", name, order["key"], _NEVER_RUN)
    try:
        yield name
    finally:
        _run(program, "rm", "--force", name)


def _find_image(name: str) -> tuple[str, dict[str, Any]]:
    """Return the program that has the image, and what it reports about the image. Raises FetchError."""
    installed = [each for each in _PROGRAMS if _is_installed(each)]
    if not installed:
        raise FetchError(
            f"{name} would be an image of podman or docker, and neither is on this node; install one, or write "
            "dir:PATH or tar:PATH"
        )
    # In this order, so that an image in both is podman's, which can make the container itself.
    for program in installed:
        inspection = _run(program, "image", "inspect", name)
        if inspection.returncode == 0:
            return program, json.loads(inspection.stdout)[0]
    raise FetchError(f"{installed[0]} has no image {name} on this node; `{installed[0]} pull {name}` there gets it")


def _is_installed(program: str) -> bool:
    folders = os.environ.get("PATH", "").split(":")
    return any(os.access(os.path.join(folder, program), os.X_OK) for folder in folders if folder)


def _run(program: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            [program, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise FetchError(f"{program} does not answer within {_SECONDS} seconds; try `{program} images`") from None


def _output_of(program: str, *words: str) -> bytes:
    done = _run(program, *words)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise FetchError(f"{program} {words[0]} failed: {lines[-1] if lines else 'without a word'}")
    return done.stdout


def _variables(given: list[str] | None) -> dict[str, str]:
    return {name: value for name, _, value in (each.partition("=") for each in given or ()) if name}
