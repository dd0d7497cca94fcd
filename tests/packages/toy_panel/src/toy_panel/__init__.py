"""A panel for Hunch as somebody else would write it. It imports the contract, exceptions and models of Hunch, no more."""
