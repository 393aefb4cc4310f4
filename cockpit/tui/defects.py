"""What a user reads where a defect has ended the cockpit."""

from __future__ import annotations

import traceback

from cockpit.present.safe import safe_lines


def defect_text(defect: BaseException | None) -> str:
    """What has happened, what it means for the jobs, and the traceback without the values of variables: harmless."""
    told = "" if defect is None else "".join(traceback.format_exception(defect, limit=-MOST_FRAMES))
    return safe_lines(
        f"The cockpit has ended because of a defect. Jobs are not affected. Please report it with these lines:\n{told}"
    )


MOST_FRAMES = 12
"""The innermost ones."""
