"""The asyncio shell around the engine: processes, containers, clock, socket."""
