"""What stands beside a form."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.formats.foreign.converting import JOB_FILE, ConvertedJob
from cockpit.model.spec import Mode, WorkerPool
from cockpit.present.columns import Context
from cockpit.present.form.aside import brought_lines, run_lines, start_line, why_lines
from cockpit.present.form.nodes import node_lines
from cockpit.present.outlook import prediction
from cockpit.present.spans import plain
from tests.builders import ANN, a_spec
from tests.doubles.samples import NOW, node_row, outlook

CONTEXT = Context(now=NOW)


@pytest.mark.req("UI-08", "LA-60")
def test_the_first_and_the_last_of_many_replicas_are_shown() -> None:
    pools = (WorkerPool(replicas=1), WorkerPool(replicas=6, command="python w.py"))
    lines = run_lines(a_spec("p", mode=Mode.WORKER_POOLS, worker_pools=pools), ANN, [node_row()], 80)
    texts = [plain(each) for each in lines]
    assert texts[2:4] == ["rank 1  p-1 in /workspace", "python w.py"]
    assert texts[-1] == "and so on, up to rank 6"


@pytest.mark.req("UI-08", "JT-43")
@pytest.mark.parametrize(
    ("cpus", "gib", "figures"),
    [
        (64, 480, ["36/64", "24/480", "1.5/8", "A100"]),
        (100, 1000, ["36/100", "24/1000", "1.5/8", "A100"]),
        (10_000, 10_240, ["36/10000", "24/10240", "1.5/8", "A100"]),
    ],
)
def test_the_figures_of_a_node_are_complete_and_separated(cpus: int, gib: int, figures: list[str]) -> None:
    row = node_row(cpus=cpus, memory_mib=gib * 1024)
    assert plain([*node_lines(a_spec("p"), [row], 90)][1]).split()[3:] == figures
    full = replace(row, used_cpus=cpus, used_memory_mib=gib * 1024)
    *_, cpu, memory, cards, _ = plain([*node_lines(a_spec("p"), [full], 90)][1]).split()
    assert (cpu, memory, cards) == (f"{cpus}/{cpus}", f"{gib}/{gib}", "1.5/8")


@pytest.mark.req("LA-70", "UI-08")
def test_options_that_were_not_converted_are_listed_and_a_job_file_has_none() -> None:
    lines = brought_lines(ConvertedJob("a PyTorchJob", {}, ("spec.x: has no\x1b[31m counterpart",)), 60)
    assert [plain(each) for each in lines] == [
        "Taken over from a PyTorchJob",
        "1 thing of it could not be carried over:",
        "  spec.x: has no\\x1b[31m counterpart",
        "",
    ]
    assert list(brought_lines(ConvertedJob(JOB_FILE, {}), 60)) == []


@pytest.mark.req("UI-08", "SC-12")
def test_the_predicted_start_of_a_form_is_a_sentence_or_is_shown_as_pending() -> None:
    assert plain(start_line(None, CONTEXT)) == "asking when it would start …"
    said = plain(start_line(outlook(), CONTEXT))
    assert said == f"{said[0].upper()}{said[1:-1]}."
    assert said.lower() == f"{prediction(outlook(), CONTEXT).lower()}."
    assert [plain(each) for each in why_lines(outlook(), CONTEXT, 80)] != []
    assert list(why_lines(None, CONTEXT, 80)) == []
