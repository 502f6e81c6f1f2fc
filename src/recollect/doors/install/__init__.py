"""Writing recollect into an agent's own configuration, and taking out of it exactly what was written."""
