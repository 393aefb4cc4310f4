"""The functions that actions run, in one module for each subject. Each takes the application."""
