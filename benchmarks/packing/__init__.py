"""Rows of several sentences beside padded batches."""
