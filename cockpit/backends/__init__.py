"""The clusters that a face can look at."""
