"""Catalogues as files and as words of commands."""
