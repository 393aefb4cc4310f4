"""Several clusters as one: their jobs in one list, and every act at the cluster whose job it is. It is handed its
members and imports none.
"""
