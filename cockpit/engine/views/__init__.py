"""The machine's state as rows for faces, and what of it whom may see."""
