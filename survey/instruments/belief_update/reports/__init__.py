"""Reports that only belief studies have: alignment of language models, human calibration, budgets."""
