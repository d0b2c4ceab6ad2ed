"""Fresh environments: every extra with every backend."""
