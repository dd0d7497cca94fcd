"""A second instrument, for the tests alone: it proves that the core knows nothing of beliefs.

Three free-text guesses at how a question goes on, each marked after it was given and shown with its points on the next
screen. No answer key is read, nothing is predicted.
"""
