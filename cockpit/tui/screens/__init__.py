"""Whole screens: one module and one stylesheet each."""
