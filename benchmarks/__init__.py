"""This library beside its peers: `make benchmarks TABLE=training_step`."""
