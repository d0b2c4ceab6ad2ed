"""Long runs before a release: a soak test, and trainings that are killed."""
