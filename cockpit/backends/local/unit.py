"""The machine-wide engine as a unit of systemd: the file that ships, for the Python that runs this."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

from cockpit.errors import CockpitError

UNIT = "cockpit-cluster-engine.service"
FOLDER = Path("/etc/systemd/system")


def unit_text(python: str = sys.executable) -> str:
    """Return the text of the unit file."""
    return (files("cockpit.backends.local") / UNIT).read_text(encoding="utf-8").replace("@PYTHON@", _word(python))


def install_unit(folder: Path = FOLDER) -> Path:
    """Write it where systemd looks for it; nothing is started. Raises `CockpitError`."""
    path = folder / UNIT
    try:
        path.write_text(unit_text(), encoding="utf-8")
        path.chmod(0o644)
    except PermissionError:
        raise CockpitError(f"{path} is written by root: use sudo.") from None
    except OSError as error:
        raise CockpitError(f"{path} cannot be written: {error.strerror}. Is there systemd on this machine?") from error
    return path


def _word(text: str) -> str:
    """Return one word of ExecStart. Source: systemd.service(5), command lines; systemd.unit(5), specifiers."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'
