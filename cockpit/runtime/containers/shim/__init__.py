"""Programs that run beside and inside a container. They use the standard library only, load in about 20 ms, and outlive
the engine."""
