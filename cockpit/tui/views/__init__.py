"""The views of the main screen: one object declares each of them; `all.py` lists them in their order."""
