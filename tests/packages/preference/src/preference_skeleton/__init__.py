"""Two replies of language models to a prompt are shown, and people say which is better: as small as it can be.

It shows that the contract carries an instrument whose items are pairs of replies. It is no part of Hunch.
"""
