"""What the benchmarks share: tables, and other libraries to stand beside."""
