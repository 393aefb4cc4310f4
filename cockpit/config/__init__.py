"""Typed settings and the folders they are read from.

`load_settings` merges flags, `COCKPIT_*`, the user's config.toml and the machine's; `paths` says where an engine keeps
its socket and its state.
"""

from cockpit.config.loading import load_settings
from cockpit.config.places import EnginePaths, paths, system_paths
from cockpit.config.settings import SETTINGS, Settings

__all__ = ["SETTINGS", "EnginePaths", "Settings", "load_settings", "paths", "system_paths"]
