"""Typed settings and the folders they are read from.

`loading.load_settings` merges flags, `COCKPIT_*`, the user's config.toml and the machine's; `places.paths` says where
an engine keeps its socket and its state. They are apart because every command needs the second, and few the first.
"""
