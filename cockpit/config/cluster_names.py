"""Names that mean a cluster wherever one is asked for.

They are apart from `places` because every command needs them before msgspec is imported (`cli`).
"""

from __future__ import annotations

from typing import Final

OWN: Final = "local"
"""The user's own engine."""
SYSTEM: Final = "system"
"""The machine-wide one."""
DEMO: Final = "demo"
"""A simulated cluster, made anew for each command."""
SLURM: Final = "slurm"
"""The Slurm cluster that this machine's commands speak to."""
EVERY_CLUSTER: Final = "all"
"""All clusters of the user in one view."""
