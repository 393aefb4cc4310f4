"""Finds folders and files on this machine that a job names and that do not exist, before the job waits for hours."""

from __future__ import annotations

from pathlib import Path

from cockpit.launch.batchscript import output_folders
from cockpit.model.image import ImageKind, image_of
from cockpit.model.spec import JobSpec


def absent(spec: JobSpec) -> tuple[str, ...]:
    """A sentence for each, led by its field's path. No error: it may come before the job starts. Looks at the disk."""
    named = [(field, each.path) for field, each in spec.references() if each.path]
    image = image_of(spec.image)
    if image.kind in {ImageKind.DIR, ImageKind.TAR}:
        named.append(("image", image.where))
    if spec.script is not None:
        named += [("script.work_dir", spec.script.work_dir), *output_folders(spec.script)]
    return tuple(
        f"{field}: {path} is not there now; the job fails if it is not when it starts"
        for field, path in named
        if not _is_there(path)
    )


def _is_there(path: str) -> bool:
    """Return whether the path exists. A path that the submitter may not read counts as missing."""
    try:
        return Path(path).exists()
    except OSError:
        return False
