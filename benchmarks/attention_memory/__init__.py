"""The attention layer on a sequence so long that its memory decides."""
