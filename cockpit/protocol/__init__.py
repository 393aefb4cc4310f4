"""The protocol of the engine's socket, shared by the engine and its clients. Pure."""
