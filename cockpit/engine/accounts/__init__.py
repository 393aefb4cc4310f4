"""Accounts, users and QOS as people change them."""
