"""How beliefs after several evidence questions add up."""
