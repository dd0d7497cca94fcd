"""How beliefs after several evidence questions compose. Numpy alone: plain arrays in, figures out."""
