"""Runs contestants beside each other, and writes down what was seen."""
