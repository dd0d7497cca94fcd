"""The belief update: how likely is a correct answer, before and after seeing the answer to another question."""
