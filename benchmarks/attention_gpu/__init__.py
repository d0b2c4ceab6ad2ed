"""Attention on a GPU, in bfloat16 and float32."""
