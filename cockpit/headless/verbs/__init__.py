"""One module for each verb, or for several verbs of one subject."""
