"""Terminal emulators: what a program wrote becomes lines of styled text, which the terminal pane draws."""
