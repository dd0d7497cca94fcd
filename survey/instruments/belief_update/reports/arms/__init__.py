"""What the levels of a condition change in alignment."""
