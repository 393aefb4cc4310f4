"""What a job names of this machine's disk and is not there. A job may wait for hours before it would tell."""

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
    """What its submitter may not look at is as good as not there."""
    try:
        return Path(path).exists()
    except OSError:
        return False
