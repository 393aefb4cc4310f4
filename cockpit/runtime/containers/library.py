"""The packages that every job can import: `cockpit.elastic`, and the same as `kubeai.elastic`. Blocks.

They lie once in the engine's state folder, and containers show that folder read-only, see `shim.view`. Each package
also has the names and modules of an installed one of its name, so that nothing is hidden by it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cockpit import elastic

FOLDER: Final = "python"
"""Of the state folder."""
_PACKAGES: Final = ("cockpit", "kubeai")
_INIT: Final = b'''"""What cockpit gives to training scripts, in front of an installed package of this name."""

import os
from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
for _init in [os.path.join(_folder, "__init__.py") for _folder in __path__[1:]]:
    if os.path.isfile(_init):
        with open(_init, "rb") as _stream:
            exec(compile(_stream.read(), _init, "exec"))
        break
'''


def lay_out(state: Path) -> None:
    """Write the packages where they are missing or another version's; a file that is read stays whole."""
    module = Path(elastic.__file__).read_bytes()
    for package in _PACKAGES:
        folder = state / FOLDER / package
        for made in (folder.parent, folder):
            made.mkdir(exist_ok=True)
            made.chmod(0o755)
        _write(folder / "__init__.py", _INIT)
        _write(folder / "elastic.py", module)


def _write(path: Path, content: bytes) -> None:
    if path.is_file() and path.read_bytes() == content:
        return
    draft = path.with_name(f".{path.name}.new")
    draft.write_bytes(content)
    draft.chmod(0o644)
    draft.replace(path)
