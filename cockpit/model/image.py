"""The `image` of a job: the root file system that its containers start from."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

HOST: Final = "host"
"""The machine's own root."""


class ImageKind(StrEnum):
    HOST = "host"
    DIR = "dir"
    """A folder that holds a root file system."""
    TAR = "tar"
    """Such a folder packed into one file."""
    NAMED = "named"
    """An image of this name in podman or docker on the node."""


class Mpi(StrEnum):
    """An implementation of MPI: each has host files, variables and options of its own."""

    OPENMPI = "openmpi"
    MPICH = "mpich"


class Image(NamedTuple):
    """An image as it is written: `host`, `dir:PATH`, `tar:PATH`, or a name."""

    kind: ImageKind
    where: str
    """The path, or the name; empty for the host's."""


def image_of(text: str) -> Image:
    """Return the image of its text; a text with no other form is a name."""
    # The word itself: an image that is called `host` in a registry would have to be written with its registry.
    if text == HOST:
        return Image(ImageKind.HOST, "")
    for kind in (ImageKind.DIR, ImageKind.TAR):
        if text.startswith(f"{kind}:"):
            return Image(kind, text[len(kind) + 1 :])
    return Image(ImageKind.NAMED, text)
