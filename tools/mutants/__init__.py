"""Mutation testing of the library."""
