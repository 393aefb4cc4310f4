"""`cockpit serve`: the cockpit over SSH, one process with the user's credentials for each session."""
