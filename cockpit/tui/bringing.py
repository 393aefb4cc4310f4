"""Jobs that people have already, in files: found in a folder, and read for a form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from cockpit.errors import CockpitError, SpecErrors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.formats.foreign.bringing import Brought
    from cockpit.formats.job.file import ReadJobs

MOST_FILES: Final = 500
"""Of a folder so many are looked into."""
LONGEST: Final = 256 * 1024
"""Whatever is longer was not written by hand."""


def jobs_in(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and kind of each file there that holds one job."""
    from cockpit.formats.foreign.bringing import what_is

    for path in sorted(folder.iterdir())[:MOST_FILES]:
        if text := _text(path):
            try:
                what = what_is(text)
            except CockpitError:
                continue
            if what:
                yield path.name, what


def job_of(path: Path, read: ReadJobs) -> Brought:
    """The job in a file; its paths begin where it stands. Raises `SpecErrors`, with what to do."""
    from cockpit.formats.foreign.bringing import brought

    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SpecErrors([f"{path}: is not UTF-8; save it as UTF-8"]) from None
    except OSError as failed:
        raise SpecErrors([f"{path}: cannot be read: {failed.strerror}"]) from None
    found = brought(str(path), text, lambda name: (path.parent / name).read_text(encoding="utf-8"))
    if found is None:
        kinds = "one job file, sbatch script, arena or gcloud line, PyTorchJob or CustomJob"
        raise SpecErrors([f"{path}: is no job; a form takes {kinds}"])
    return found if path.parent.absolute() == Path.cwd() else _from_there(found, path.parent, read)


def _text(path: Path) -> str:
    """Empty: it is not one to look into."""
    try:
        if not path.is_file() or path.stat().st_size > LONGEST:
            return ""
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _from_there(found: Brought, folder: Path, read: ReadJobs) -> Brought:
    """With whole paths, if it can be read as it is."""
    import msgspec

    from cockpit.formats.job.specfile import spec_as_table

    try:
        (spec,) = read("job.json", msgspec.json.encode(found.values).decode(), str(folder.absolute()))
    except SpecErrors:
        return found
    return found._replace(values=spec_as_table(spec))
