"""Where questions come from: the starter bank, and loaders for published benchmarks. Imports services and below."""
