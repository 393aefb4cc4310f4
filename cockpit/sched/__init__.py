"""Pure scheduling decisions."""
