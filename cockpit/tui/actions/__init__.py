"""The actions of the TUI, in one module for each subject; `all` lists them together."""
