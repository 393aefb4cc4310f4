"""One small file for each verb, or for verbs that do the same sort of thing."""
