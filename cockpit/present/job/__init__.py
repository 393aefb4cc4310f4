"""One job in words: the answer panel, its pages and tabs, the list that it stands in."""
