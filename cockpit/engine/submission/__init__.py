"""Jobs on their way in: everything that is asked before they are queued."""
