"""The belief update: how likely is a correct answer, before and after seeing how the model answered another question."""
