"""A fragment of a sentence is shown and its next word is asked for: cloze norms, as small as they can be.

It shows that the contract carries an instrument whose items are places in texts. It is no part of Hunch.
"""
