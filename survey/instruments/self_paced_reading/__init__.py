"""Self-paced reading: a passage, word by word, and then one question about it."""
