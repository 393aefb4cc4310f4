"""A cluster as it was once: priorities, plans, reasons and what-ifs by the embedded core."""
