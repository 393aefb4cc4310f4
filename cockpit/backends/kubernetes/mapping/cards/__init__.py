"""Cards of nodes and the parts of them that pods hold, one module for each way in which clusters manage cards."""
