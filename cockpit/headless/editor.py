"""Open a job's file in the user's editor, which takes over the terminal meanwhile, and return the result."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Collection
from pathlib import Path

import msgspec

from cockpit.errors import CockpitError
from cockpit.model.access_level import ACCESS_VARIABLE
from cockpit.model.names import next_name
from cockpit.model.spec import JobSpec
from cockpit.present.safe import safe_lines

ERROR_MARK = "#! "
SUFFIX = ".yaml"
# The one screen editor that POSIX requires.
USUAL = "vi"


def chosen_editor() -> str:
    """Return `$VISUAL` or `$EDITOR`; empty if the user chose none."""
    return os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""


def in_editor(text: str) -> str | None:
    """Return the text as the user edited it; None if it was left unchanged. Raises `CockpitError` if no editor runs."""
    if os.environ.get(ACCESS_VARIABLE):
        # Every editor opens a shell on the machine, which a session of cockpit serve does not have.
        raise CockpitError("A session of cockpit serve has no editor. Give the changed job as a file: edit JOB FILE")
    # The variable may contain options, as in `code --wait`.
    editor = shlex.split(chosen_editor() or USUAL)
    # Deleted by name at the end: many editors replace the file instead of writing into it.
    with tempfile.NamedTemporaryFile("w", suffix=SUFFIX, prefix="cockpit-", encoding="utf-8", delete=False) as file:
        file.write(text)
    try:
        done = subprocess.run([*editor, file.name], check=False)
        edited = Path(file.name).read_text(encoding="utf-8")
    except OSError as error:
        raise CockpitError(f"The editor {editor[0]!r} cannot be run: {error.strerror}. Set EDITOR to one.") from error
    except UnicodeDecodeError as error:
        raise CockpitError("What the editor wrote is not UTF-8; nothing was done.") from error
    finally:
        Path(file.name).unlink(missing_ok=True)
    # An editor that ends with an error, such as vi after `:cq`, means that the user gave up.
    return None if done.returncode or edited == text else edited


def with_errors(text: str, errors: str) -> str:
    """Return the text with the errors above it, as lines that `without_errors` removes."""
    marked = "".join(f"{ERROR_MARK}{line}\n" for line in safe_lines(errors).splitlines())
    # Without those of the last round, which would pile up.
    return marked + without_errors(text)


def without_errors(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(ERROR_MARK))


def clone_spec(spec: JobSpec, taken: Collection[str]) -> JobSpec:
    """Return a copy of the spec under a name that no job has: `bert`, `bert-2`, `bert-3` …"""
    return msgspec.structs.replace(spec, name=next_name(spec.name, taken), hold=False)
