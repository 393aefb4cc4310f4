"""`cockpit scale` changes the number of workers of an elastic job, and nothing else of it."""

from __future__ import annotations

import msgspec
import pytest

from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.headless.exitcodes import ExitCode
from cockpit.model.resilience import Elastic
from tests.doubles.samples import job
from tests.headless.conftest import Desk

ELASTIC = Elastic(workers=4, min_workers=2, max_workers=8)
SPEC = msgspec.structs.replace(job().spec, elastic=ELASTIC, nodes=4)


@pytest.fixture
def desk(desk: Desk) -> Desk:
    detail = desk.backend.details[4715]
    desk.backend.details[4715] = msgspec.structs.replace(detail, job=msgspec.structs.replace(detail.job, spec=SPEC))
    desk.read_jobs = lambda source, text, folder: read_jobs(source, text, folder, defaults=Defaults())
    return desk


@pytest.mark.req("KU-10", "KU-07")
@pytest.mark.parametrize(
    ("written", "workers", "said"), [("6", 6, "6 workers"), ("+2", 6, "6 workers"), ("-3", 1, "1 worker")]
)
def test_the_workers_are_a_number_or_an_addition(desk: Desk, written: str, workers: int, said: str) -> None:
    assert desk("scale", "4715", written).lines == [f"{said} for 4715"]
    wanted = msgspec.structs.replace(SPEC, nodes=workers, elastic=msgspec.structs.replace(ELASTIC, workers=workers))
    assert [each for each in desk.backend.asked if each[0] == "edit"] == [("edit", 4715, wanted)]


@pytest.mark.req("KU-10")
@pytest.mark.parametrize("wrong", ["many", "+", "--2", "1.5", "", "9999999"])
def test_what_is_no_number_is_refused(desk: Desk, wrong: str) -> None:
    done = desk("scale", "4715", wrong)
    assert done.code == ExitCode.USAGE
    assert desk.backend.asked == []


@pytest.mark.req("KU-10")
def test_a_job_that_is_not_elastic_keeps_its_workers(desk: Desk) -> None:
    desk.backend.details[4715] = msgspec.structs.replace(
        desk.backend.details[4715], job=msgspec.structs.replace(job(), id=desk.backend.details[4715].job.id)
    )
    done = desk("scale", "4715", "6")
    assert "Job 4715 is not elastic, so that its number of workers is fixed." in done.err
    assert not [each for each in desk.backend.asked if each[0] == "edit"]


@pytest.mark.req("KU-10", "UI-41")
def test_an_edit_of_the_workers_needs_no_nodes(desk: Desk, tmp_path) -> None:
    (tmp_path / "change.yaml").write_text("elastic: {workers: 5, min_workers: 2, max_workers: 8}\n")
    assert desk("edit", "4715", str(tmp_path / "change.yaml")).lines == ["edited 4715"]
    (edited,) = [each for each in desk.backend.asked if each[0] == "edit"]
    assert (edited[2].nodes, edited[2].elastic.workers) == (5, 5)
