"""Where the time of waiting jobs goes: causes, periods, reports and advice."""
