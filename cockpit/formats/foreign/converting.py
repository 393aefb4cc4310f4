"""Converts a job in any known form into the fields of a job file, to fill the new-job form with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from cockpit.errors import SpecErrors
from cockpit.formats.foreign.draft import UNKNOWN, Submission
from cockpit.formats.foreign.exchange import Beside, Form, alone, form_of, taken_over
from cockpit.formats.job.fields import JOB
from cockpit.formats.job.file import job_values

NAMES: Final[Mapping[Form, str]] = {
    Form.SBATCH: "a script for sbatch",
    Form.ARENA: "an arena command line",
    Form.GCLOUD: "a gcloud command line",
    Form.PYTORCHJOB: "a PyTorchJob",
    Form.TFJOB: "a TFJob",
    Form.MPIJOB: "an MPIJob",
    Form.TRAINJOB: "a TrainJob",
    Form.TRAININGJOB: "a TrainingJob",
    Form.JOB: "a Job of Kubernetes",
    Form.VOLCANOJOB: "a Job of Volcano",
    Form.CUSTOMJOB: "a CustomJob",
}
JOB_FILE: Final = "a job file"
_FIELDS: Final = frozenset(field.name for field in JOB.fields)


class ConvertedJob(NamedTuple):
    """A converted job: its form, its fields, and one sentence for each thing that could not be carried over."""

    what: str
    values: Mapping[str, object]
    notes: tuple[str, ...] = ()


def form_name(text: str) -> str:
    """Return the name of the text's form; empty: it is no job. A job file has several lines."""
    # Foreign forms first: a manifest is YAML as well, and would read as a job file with unknown fields.
    form = form_of(text)
    if form is not None:
        return NAMES[form]
    return JOB_FILE if _file_values(text) else ""


def convert_job(
    source: str, text: str, beside: Beside = alone, submission: Submission = UNKNOWN
) -> ConvertedJob | None:
    """Return the converted job; None: the text is no job. Raises `SpecErrors` if it is a job with errors."""
    converted = taken_over(source, text, beside, submission)
    if converted is not None:
        return ConvertedJob(NAMES[converted.form], msgspec.json.decode(converted.text), converted.notes)
    values = _file_values(text)
    return ConvertedJob(JOB_FILE, values) if values else None


def _file_values(text: str) -> Mapping[str, object]:
    """Return the fields of a job file; empty: it is none."""
    # Any single line is YAML, so that a word would be a job file.
    if "\n" not in text.strip():
        return {}
    try:
        values = job_values("", text)
    except SpecErrors:
        return {}
    return values if values.keys() & _FIELDS else {}
