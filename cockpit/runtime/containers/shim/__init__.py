"""What runs beside and inside a container: standard library only, loaded in about 20 ms, outlives the engine."""
