"""Next tokens: people guess a text's next token, run by run, and models do the same."""
