"""Check which kinds of images jobs can use on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.runtime.findings import Finding, note, ok

if TYPE_CHECKING:
    from cockpit.runtime.checks.surroundings import Surroundings

PODMAN = "podman"
PROGRAMS = (PODMAN, "docker")
"""The programs that may have an image, in the order in which they are tried."""


def images(around: Surroundings) -> list[Finding]:
    for program in PROGRAMS:
        version = around.probe((program, "--version"))
        if version.ok:
            how = "in containers of its own" if program == PODMAN and around.uid == 0 else "as copies"
            return [ok("images", f"by name from {version.first_line}, {how}, or as dir:PATH and tar:PATH")]
    advice = "An image by its name needs podman or docker: `apt-get install podman` as root."
    return [note("images", "as dir:PATH and tar:PATH; neither podman nor docker is installed", advice)]
