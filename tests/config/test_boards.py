from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.config.boards import board_of


@pytest.mark.req("JT-41")
def test_a_users_tensorboard_has_a_folder_of_its_own_in_the_state_folder(tmp_path: Path) -> None:
    assert (
        board_of("job-7", {"XDG_STATE_HOME": str(tmp_path)})._folder == tmp_path / "cockpit-cluster/tensorboard/job-7"
    )
