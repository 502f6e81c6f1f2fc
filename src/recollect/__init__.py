"""recollect: the memory of AI agents."""
