"""Three free-text guesses at how a question goes on, each marked after it was given, and a last page that only says
what all of them were worth.

It is no part of Hunch: the tests install it as a package of somebody else's, to prove that the core knows nothing of
beliefs.
"""
