"""Speed of recollect, side by side with what one would otherwise use. Run `python -m benchmarks --help`."""
