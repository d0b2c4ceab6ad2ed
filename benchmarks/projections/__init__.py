"""Projections of queries, keys and values in one matrix product or three."""
