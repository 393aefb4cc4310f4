"""Reads jobs that users have already in files (batch scripts, manifests, …) into the form of a new job."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cockpit.errors import CockpitError, SpecErrors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo

    from cockpit.formats.foreign.converting import ConvertedJob
    from cockpit.formats.foreign.draft import Submission
    from cockpit.formats.job.file import ReadJobs
    from cockpit.model.ids import Millis

MOST_FILES: Final = 500
"""The number of files of a folder that are read at most."""
LONGEST: Final = 256 * 1024
"""Size in bytes up to which a file is read; a longer one was not written by hand."""


def job_files_in(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the kind of each file of the folder that holds one job."""
    # Imported late, here and below: the readers of foreign formats would make every start of the TUI slower.
    from cockpit.formats.foreign.converting import form_name

    # The form waits for this list: a folder with very many files must not keep the user waiting.
    for path in sorted(folder.iterdir())[:MOST_FILES]:
        if text := _text(path):
            try:
                what = form_name(text)
            except CockpitError:
                continue
            if what:
                yield path.name, what


def submission_from_here(now: Millis, zone: tzinfo | None) -> Submission:
    """Return the time and place of a submission for a form, without the shell's variables, which would only fill it."""
    from cockpit.formats.foreign.draft import Submission
    from cockpit.headless.surroundings import local_zone

    return Submission(now=datetime.fromtimestamp(now / 1000, zone or local_zone()))


def read_job_file(path: Path, read: ReadJobs, submission: Submission) -> ConvertedJob:
    """Return the job in a file. Raises `SpecErrors`, with what to do.

    Paths are relative to the file's folder; those of a batch script to the folder where the cockpit was started.
    """
    from cockpit.formats.foreign.converting import NAMES, convert_job
    from cockpit.formats.foreign.exchange import Form

    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SpecErrors([f"{path}: is not UTF-8; save it as UTF-8"]) from None
    except OSError as failed:
        raise SpecErrors([f"{path}: cannot be read: {failed.strerror}"]) from None
    job = convert_job(str(path), text, lambda name: (path.parent / name).read_text(encoding="utf-8"), submission)
    if job is None:
        kinds = "one job file, sbatch script, arena or gcloud line, Kubernetes manifest or CustomJob"
        raise SpecErrors([f"{path}: is no job; a form takes {kinds}"])
    # sbatch resolves paths against the working directory, not against the script; all other formats against the file.
    stays = job.what == NAMES[Form.SBATCH] or path.parent.absolute() == Path.cwd()
    return job if stays else _from_there(job, path.parent, read)


def _text(path: Path) -> str:
    """Return the file's text; empty where it is too long, or no text."""
    try:
        if not path.is_file() or path.stat().st_size > LONGEST:
            return ""
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _from_there(job: ConvertedJob, folder: Path, read: ReadJobs) -> ConvertedJob:
    """Return the job with absolute paths; unchanged where it cannot be read without changes by the user."""
    import msgspec

    from cockpit.formats.job.specfile import spec_as_table

    try:
        # The reader of job files makes paths absolute against a folder, so the values are written as JSON and read
        # again.
        (spec,) = read("job.json", msgspec.json.encode(job.values).decode(), str(folder.absolute()))
    except SpecErrors:
        return job
    return job._replace(values=spec_as_table(spec))
