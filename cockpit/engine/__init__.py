"""The pure state machine: events in, effects out."""
