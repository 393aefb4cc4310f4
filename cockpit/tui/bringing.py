"""Jobs that people have already, in files: found in a folder, and read for a form."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cockpit.errors import CockpitError, SpecErrors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo

    from cockpit.formats.foreign.bringing import Brought
    from cockpit.formats.foreign.submission import Submission
    from cockpit.formats.job.file import ReadJobs
    from cockpit.model.ids import Millis

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


def here(now: Millis, zone: tzinfo | None) -> Submission:
    """What a form knows of the place that a job is submitted from. The shell's variables would only fill it up."""
    from cockpit.formats.foreign.submission import Submission
    from cockpit.headless.localzone import local_zone

    return Submission(now=datetime.fromtimestamp(now / 1000, zone or local_zone()))


def job_of(path: Path, read: ReadJobs, submission: Submission) -> Brought:
    """The job in a file; its paths begin where it stands, those of a batch script where the cockpit was started. Raises
    `SpecErrors`, with what to do."""
    from cockpit.formats.foreign.bringing import NAMES, brought
    from cockpit.formats.foreign.exchange import Form

    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SpecErrors([f"{path}: is not UTF-8; save it as UTF-8"]) from None
    except OSError as failed:
        raise SpecErrors([f"{path}: cannot be read: {failed.strerror}"]) from None
    found = brought(str(path), text, lambda name: (path.parent / name).read_text(encoding="utf-8"), submission)
    if found is None:
        kinds = "one job file, sbatch script, arena or gcloud line, Kubernetes manifest or CustomJob"
        raise SpecErrors([f"{path}: is no job; a form takes {kinds}"])
    stays = found.what == NAMES[Form.SBATCH] or path.parent.absolute() == Path.cwd()
    return found if stays else _from_there(found, path.parent, read)


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
