"""Find which MPI a root file system has, by the target of its `mpirun` link; no program is run."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Final

from cockpit.model.image import Mpi

_PLACES: Final = ("usr/local/bin/mpirun", "usr/bin/mpirun", "bin/mpirun")
_PROGRAMS: Final = {Mpi.OPENMPI: ("openmpi", "orterun", "prterun"), Mpi.MPICH: ("mpich", "hydra")}
"""Open MPI's mpirun is a link to orterun, since 5.0 to prterun; MPICH's to mpiexec.hydra. Debian appends a suffix."""
_MOST_LINKS: Final = 10


def detect_mpi(root: Path) -> Mpi | None:
    """Return the MPI; None if there is none, or an unknown one."""
    for place in _PLACES:
        names = " ".join(_names(root, place))
        for mpi, programs in _PROGRAMS.items():
            if any(program in names for program in programs):
                return mpi
    return None


def _names(root: Path, place: str) -> list[str]:
    """Return the targets of a chain of links, one by one, within the root."""
    names: list[str] = []
    while (root / place).is_symlink() and len(names) < _MOST_LINKS:
        target = str((root / place).readlink())
        # Taken within the root: an absolute target is a path of the image, not of this machine.
        place = posixpath.normpath(posixpath.join("/", posixpath.dirname(place), target)).lstrip("/")
        names.append(place)
    return names
