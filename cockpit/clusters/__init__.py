"""The clusters that there are to open: which one a name means, and the backend that speaks to it."""
