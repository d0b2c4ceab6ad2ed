"""Queries, keys and values of one sequence: one product or three."""
