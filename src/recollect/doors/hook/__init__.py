"""The hook door: what a coding agent runs at every prompt. Standard library only, quick, and never in the way."""
