"""The tables, with the columns of jobs, nodes, holds, events and all other rows."""
