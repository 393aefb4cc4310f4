"""Every act of the cockpit, by what it is about; `all` has them together."""
