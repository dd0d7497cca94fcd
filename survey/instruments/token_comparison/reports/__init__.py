"""Reports of comparisons of next tokens."""
