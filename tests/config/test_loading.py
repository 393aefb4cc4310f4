from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cockpit.config.loading import load_settings
from cockpit.config.settings import SETTINGS, Settings, default_text, variable
from cockpit.errors import SpecErrors
from cockpit.sched.policy import FractionFit


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_defaults_equal_the_documented_table() -> None:
    assert load_settings(env={}) == Settings()
    for setting in SETTINGS.fields:
        if text := default_text(setting):
            spoken = load_settings(env={variable(setting): text})
            assert spoken == Settings(), setting.name


def test_every_field_is_a_setting() -> None:
    assert [setting.attribute for setting in SETTINGS.fields] == list(Settings.__struct_fields__)


def test_flags_beat_environment_beats_user_beats_machine(tmp_path: Path) -> None:
    user = written(tmp_path / "user.toml", 'hold_window = "1h"\ngrace_period = 1\ntime_limit = "10m"\n')
    machine = written(
        tmp_path / "etc.toml", 'hold_window = "2h"\ngrace_period = 2\ntime_limit = "20m"\npids_limit = 64\n'
    )
    settings = load_settings(
        flags={"hold_window": "3h", "grace_period": None},
        env={"COCKPIT_HOLD_WINDOW": "9h", "COCKPIT_GRACE_PERIOD": "7", "COCKPIT_TIME_LIMIT": ""},
        files=[user, machine, tmp_path / "absent.toml", user / "below-a-file"],
    )
    assert settings.hold_window_seconds == 3 * 3600
    assert settings.grace_seconds == 7
    assert settings.time_limit_seconds == 600
    assert settings.pids_limit == 64


def test_text_from_the_environment_becomes_typed() -> None:
    settings = load_settings(
        env={
            "COCKPIT_INVARIANTS": "yes",
            "COCKPIT_PIDS_LIMIT": "100",
            "COCKPIT_SCRATCH_SIZE": "2G",
            "COCKPIT_FRACTION_FIT": "fgd",
            "COCKPIT_KEEP_HISTORY": "2d",
            "COCKPIT_STATE_FOLDER": "/srv/state",
            "COCKPIT_CLUSTER": "lab-a",
            "COCKPIT_JOB_ID": "set in every container",
        }
    )
    assert settings == Settings(
        cluster="lab-a",
        state_folder="/srv/state",
        keep_history_seconds=2 * 86400,
        pids_limit=100,
        scratch_mib=2048,
        fraction_fit=FractionFit.FGD,
        invariants=True,
    )


def test_text_of_a_flag_becomes_typed_and_a_switch_stays_one() -> None:
    settings = load_settings(flags={"pids_limit": "100", "read_only": True, "ascii": "on", "theme": None}, env={})
    assert settings == Settings(pids_limit=100, read_only=True, ascii=True)


def test_all_errors_of_all_layers_are_reported_together(tmp_path: Path) -> None:
    user = written(tmp_path / "user.toml", 'hold_windw = "4h"\npids_limit = 3\ninvariants = "perhaps"\n')
    broken = written(tmp_path / "etc.toml", "cluster = \n")
    with pytest.raises(SpecErrors) as caught:
        load_settings(
            flags={"fraction_fit": "worst"}, env={"COCKPIT_CLUSTER": "a\x1b[2J", "HOME": "/h"}, files=[user, broken]
        )
    errors = caught.value.errors
    assert len(errors) == 6
    assert errors[0].startswith(f"{broken}: is no TOML: ")
    assert f"{user}: hold_windw: is no field here; did you mean hold_window?" in errors
    assert f"{user}: pids_limit: 3 is not between 16 and 4194304" in errors
    assert f'{user}: invariants: is the text "perhaps"; write true or false, without quotes' in errors
    assert 'environment: cluster: "a\\x1b[2J" contains characters that cannot be seen; remove them' in errors
    assert 'flags: fraction_fit: is the text "worst"; write best or fgd' in errors


@pytest.mark.parametrize(
    "line",
    [
        "hold_window = -1",
        'time_limit = "soon"',
        "time_limit = 0",
        "pids_limit = true",
        "cluster = ''",
        "invariants = 1",
    ],
)
def test_wrong_values_name_their_setting(tmp_path: Path, line: str) -> None:
    with pytest.raises(SpecErrors, match=line.split(maxsplit=1)[0]):
        load_settings(env={}, files=[written(tmp_path / "c.toml", line)])


def test_a_relative_state_folder_is_relative_to_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path / "c.toml", 'state_folder = "state"\n')
    assert load_settings(env={}, files=[file]).state_folder == str(tmp_path / "state")
    assert load_settings(env={"HOME": "/h"}, flags={"state_folder": "~/state"}).state_folder == "/h/state"
    monkeypatch.chdir(tmp_path)
    assert load_settings(env={"COCKPIT_STATE_FOLDER": "here"}).state_folder == str(tmp_path / "here")


def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'cluster = "\xff"\n')
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(SpecErrors) as wrong:
        load_settings(env={}, files=[tmp_path / "folder.toml", tmp_path / "latin.toml"])
    assert wrong.value.errors == (
        f"{tmp_path}/latin.toml: is no text in UTF-8",
        f"{tmp_path}/folder.toml: cannot be read: Is a directory",
    )


def test_without_a_file_the_toml_reader_is_not_loaded() -> None:
    """A one-shot command without configuration does not pay for a parser."""
    program = (
        "import sys; from cockpit.config.loading import load_settings; from pathlib import Path;"
        "load_settings(env={'COCKPIT_PIDS_LIMIT': '99'}, files=[Path('/nonexistent/config.toml')]);"
        "sys.exit(bool({'tomllib', 'yaml', 'asyncio'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("text", ["true", "yes", "On", "1"])
def test_a_variable_turns_a_setting_on_in_these_words(text: str) -> None:
    assert load_settings(env={"COCKPIT_INVARIANTS": text}).invariants


@pytest.mark.parametrize("text", ["false", "no", "OFF", "0"])
def test_a_variable_turns_a_setting_off_in_these_words(text: str) -> None:
    assert not load_settings(env={"COCKPIT_PLAIN_PROCESSES": text}).plain_processes
    assert not load_settings(env={"COCKPIT_INVARIANTS": text}, flags={}).invariants


def test_a_setting_that_is_no_command_line_is_refused_by_its_name() -> None:
    with pytest.raises(SpecErrors, match=r"alert_mail.*is no command line: No closing quotation"):
        load_settings(env={"COCKPIT_ALERT_MAIL": "mail 'ann"})


def test_settings_are_read_in_a_working_folder_that_was_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert load_settings(env={"COCKPIT_STATE_FOLDER": "state"}).state_folder == "/state"
