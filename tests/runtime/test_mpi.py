from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.model.image import Mpi
from cockpit.runtime.mpi import detect_mpi


@pytest.mark.req("LA-12")
@pytest.mark.parametrize(
    ("links", "found"),
    [
        (
            {"usr/bin/mpirun": "/etc/alternatives/mpirun", "etc/alternatives/mpirun": "/usr/bin/mpirun.openmpi"},
            "openmpi",
        ),
        ({"usr/bin/mpirun": "mpirun.mpich"}, "mpich"),
        ({"usr/local/bin/mpirun": "mpiexec.hydra"}, "mpich"),
        ({"usr/local/bin/mpirun": "../lib/prterun"}, "openmpi"),
        ({"usr/bin/mpirun": "/usr/bin/mpirun"}, None),
        ({}, None),
    ],
)
def test_mpirun_is_identified_by_the_program_behind_its_links(
    tmp_path: Path, links: dict[str, str], found: str | None
) -> None:
    for place, target in links.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).symlink_to(target)
    assert detect_mpi(tmp_path) == (Mpi(found) if found else None)
