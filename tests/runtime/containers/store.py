"""A store of podman's own with one image in it, made on the spot; nothing is pulled."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tests.runtime.containers.roots import make_root, packed

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.engine.effects import StartReplica
    from tests.runtime.containers.house import House

PATH = "/opt/app/bin:/bin"


def podman(*words: object) -> str:
    """Out of sight of other tests, which compare mounts."""
    done = subprocess.run(
        ["unshare", "--mount", "podman", *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def containers() -> list[str]:
    """What podman knows of them: name and state."""
    return podman("ps", "--all", "--format", "{{.Names}} {{.Status}}").splitlines()


def kept_images() -> list[str]:
    return [each for each in podman("images", "--format", "{{.Repository}}").splitlines() if "kept" in each]


def own_store(folder: Path) -> Path:
    """The file that says where it is: it knows nothing of the machine's own images, nor of other tests'."""
    file = folder / "storage.conf"
    places = {"graphroot": folder / "store", "runroot": folder / "store-run"}
    lines = "".join(f'{name} = "{place}"\n' for name, place in places.items())
    file.write_text(f'[storage]\ndriver = "overlay"\n{lines}')
    return file


def import_trainer(folder: Path) -> str:
    """The name of an image that is there from now on. Programs of its own lie where only its PATH leads."""
    root = make_root(folder / "packing")
    (root / "opt" / "app" / "bin").mkdir()
    (root / "opt" / "app" / "bin" / "train").write_text("#!/bin/sh\necho trained with $FLAVOUR as $(id -u)\n")
    (root / "opt" / "app" / "bin" / "train").chmod(0o755)
    letters = "".join(filter(str.isalnum, folder.name.lower()))  # all that may stand anywhere in a name
    name = f"localhost/cockpit-test-{letters}:1"
    variables = ("--change", f"ENV PATH={PATH}", "--change", "ENV FLAVOUR=plum", "--change", "ENV HOME=/nowhere")
    podman("import", *variables, packed(root, folder / "root.tar"), name)
    return name


def job(house: House, image: str, command: str, **spec) -> StartReplica:
    """The command, unchanged: the image has no bash."""
    made = house.job("", image=image, **spec)
    return replace(made, spec=replace(made.spec, command=command))
