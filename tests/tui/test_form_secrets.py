"""Secrets in the form of a job: masked until their field has the focus, never in a picture, submitted as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cockpit.model.ids import JobId
from cockpit.present.form.fields import shown_text
from cockpit.tui.picture import screen_svg, screen_text
from cockpit.tui.screens.form import FormScreen
from cockpit.tui.widgets.entry import Field, FieldRow
from tests.tui.lab import the_lab

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.tui.app import CockpitApp

pytestmark = pytest.mark.req("TR-10", "UI-08")
PLANTED = "planted"
ENV = {"HF_TOKEN": "planted-1", "KEY": "planted-2", "URL": "postgres://u:planted-3@db/x", "EPOCHS": "3"}
JOB = """\
name: secretive
command: train --password planted-4
output: /tmp/secretive
env: {HF_TOKEN: planted-1, KEY: planted-2, URL: "postgres://u:planted-3@db/x", EPOCHS: "3"}
"""


def field(app: CockpitApp, path: str) -> Field:
    assert isinstance(app.screen, FormScreen)
    row = next(row for row in app.screen.query(FieldRow) if row.path == path)
    return row.query_one(Field)


def drawn(of: Field) -> str:
    """Return the line of the field that the terminal gets."""
    return of.render_line(0).text


async def test_a_secret_is_shown_in_the_field_that_is_edited_alone_and_in_no_picture(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    async with the_lab(size=(160, 60)) as lab:
        cockpit, app = lab.cockpit, lab.cockpit.app
        await cockpit.press(":").type(f"new {file}").press("Enter").sees("secretive", "--password ***", "Starts now.")
        assert PLANTED not in screen_text(app)
        assert PLANTED not in drawn(field(app, "env"))
        for path in ("env", "command"):
            field(app, path).focus()
            await cockpit.finds(lambda _, at=path: PLANTED in drawn(field(app, at)), f"{path} as it is edited")
            for picture in (screen_text(app), screen_svg(app)):
                assert PLANTED not in picture
            assert PLANTED in drawn(field(app, path)), "it is only hidden from the picture"
        field(app, "name").focus()
        await cockpit.finds(lambda _: "***" in drawn(field(app, "env")), "the masked text")
        assert PLANTED not in drawn(field(app, "env"))
        await cockpit.press("Ctrl-s").sees("submitted 8")
        spec = (await lab.backend.job(JobId(8))).job.spec
        assert (spec.env, spec.command) == (ENV, "train --password planted-4")


async def test_a_copy_whose_secrets_are_masked_is_not_submitted(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB.replace("planted-1", "'***'"))
    async with the_lab(size=(160, 60)) as lab:
        cockpit = lab.cockpit
        await cockpit.press(":").type(f"new {file}").press("Enter").sees("has *** in place of a secret")
        await cockpit.press("Ctrl-s").sees("has *** in place of a secret").misses("submitted")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"HF_TOKEN": "abcdef", "N": "1"}', '{"HF_TOKEN": "***", "N": "1"}'),
        ("{KEY: abcdef, N: 1}", "{KEY: ***, N: 1}"),
        ('{"KEY": "x", "N": "x"}', '{"KEY": "***", "N": "x"}'),
        ('{"N": "ghp_Planted0123456789abcdef"}', '{"N": "***"}'),
        ("{unfinished: [", "{unfinished: ["),
        ("", ""),
    ],
)
def test_the_text_of_an_environment_is_shown_without_its_secrets(text: str, shown: str) -> None:
    assert shown_text("env", text) == shown
