"""A panel for Hunch as somebody else would write it. Of Hunch it imports contract, exceptions and models, no more."""
