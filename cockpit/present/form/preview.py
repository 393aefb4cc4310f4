"""Previews of a valid form: the commands, the possible nodes, and the job as a file in several formats."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from cockpit.errors import RequestRefused, SpecErrors
from cockpit.present.command_text import shell_text
from cockpit.present.form.aside import run_lines, text_lines
from cockpit.present.form.nodes import node_lines
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, STRONG, Line, Span, hung, line, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cockpit.formats.job.file import ReadJobs
    from cockpit.model.job import Submitter
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import NodeRow


_LEAD: Final = re.compile(r"^jobs\[0\]\.")


class CommandText(Protocol):
    """A command and its standard input."""

    @property
    def argv(self) -> Sequence[str]: ...
    @property
    def stdin(self) -> str: ...


HANDED: Final = "What the cluster is handed"


class Preview(StrEnum):
    """The previews, in the order in which the key switches between them."""

    RUNS = "What each rank runs"
    ROOM = "Nodes it may be on"
    YAML = "As a file"
    SBATCH = "As a script for sbatch"
    MANIFEST = "As a manifest"

    @property
    def following(self) -> Preview:
        every = list(Preview)
        return every[(every.index(self) + 1) % len(every)]


def preview_lines(
    preview: Preview,
    spec: JobSpec,
    known: JobSpec,
    submitter: Submitter,
    nodes: Sequence[NodeRow],
    read: ReadJobs,
    columns: int,
) -> Iterator[Line]:
    """Yield the preview's title and lines. `known`: the spec with catalogue names replaced as far as they are known."""
    yield line(Span(preview, STRONG))
    match preview:
        case Preview.RUNS:
            yield from run_lines(known, submitter, nodes, columns)
        case Preview.ROOM:
            yield from node_lines(known, nodes, columns)
        case Preview.YAML:
            from cockpit.formats.job.specfile import spec_as_yaml

            yield from text_lines(spec_as_yaml(spec))
        case Preview.SBATCH | Preview.MANIFEST:
            yield from _foreign_lines(spec, read, manifest=preview is Preview.MANIFEST)


def script_lines(shown: CommandText | RequestRefused | None, columns: int) -> Iterator[Line]:
    """Yield the script that a cluster's submit command receives, or why none can be made. `shown` None: not
    known yet."""
    yield line(Span(HANDED, STRONG))
    if isinstance(shown, RequestRefused):
        for text in shown.refusal.message.splitlines():
            yield from hung(line(Span(safe(_LEAD.sub("", text)), "warning")), columns)
    elif shown is not None:
        yield from wrapped(line(Span(shell_text(shown.argv), ACCENT)), columns)
        for each in text_lines(shown.stdin):
            yield from wrapped(each, columns)


def _foreign_lines(spec: JobSpec, read_jobs: ReadJobs, *, manifest: bool) -> Iterator[Line]:
    """Yield the job in another system's format, and the fields that the format cannot express."""
    from cockpit.formats.foreign.exchange import Form, written

    def read(source: str, text: str) -> list[JobSpec]:
        return read_jobs(f"{source}.json", text, "/")

    of_kind = Form.CUSTOMJOB if spec.worker_pools else Form.PYTORCHJOB
    try:
        document = written(spec, of_kind if manifest else Form.SBATCH, read)
    except SpecErrors as wrong:
        yield from (line(Span(safe(each), "warning")) for each in wrong.errors)
        return
    if document.lost:
        yield line(Span(f"does not say all of: {safe(', '.join(document.lost))}", "warning"))
    yield from text_lines(document.text)
