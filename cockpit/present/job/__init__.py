"""One job as text: the answer panel, its pages and tabs, and the job list that shows it."""
