"""Install the packages that every job can import: `cockpit.elastic`, also under the name `kubeai.elastic`. Blocks.

They are installed once, in the engine's state folder, which containers mount read-only, see `shim.view`. If the job's
image has a package of the same name, it stays importable: these packages extend it instead of hiding it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cockpit import elastic

FOLDER: Final = "python"
"""The subfolder of the state folder."""
MODULES: Final = ("elastic.py", "elastic_callbacks.py", "elastic_torchrun.py")
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
    """Write the packages if they are missing or of another version. Each file is replaced in one step."""
    modules = {name: Path(elastic.__file__).with_name(name).read_bytes() for name in MODULES}
    for package in _PACKAGES:
        folder = state / FOLDER / package
        for made in (folder.parent, folder):
            made.mkdir(exist_ok=True)
            # Not by `mkdir`, whose mode the umask cuts; the containers of all users must be able to read it.
            made.chmod(0o755)
        _write(folder / "__init__.py", _INIT)
        for name, module in modules.items():
            _write(folder / name, module)


def _write(path: Path, content: bytes) -> None:
    if path.is_file() and path.read_bytes() == content:
        return
    # A draft and a rename: a job may import the file at this moment.
    draft = path.with_name(f".{path.name}.new")
    draft.write_bytes(content)
    draft.chmod(0o644)
    draft.replace(path)
