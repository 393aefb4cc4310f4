"""Rules for specs and catalogue entries beyond their types. All errors are reported at once, as sentences."""
