"""Cloze: people read the beginning of a sentence and write its next word, and so do language models."""
