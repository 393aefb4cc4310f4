"""The row models of the views: each implements `TableRows` for one table of the main screen."""
