"""cockpit: a terminal cockpit for clusters that train models."""

__version__ = "0.1.0"
