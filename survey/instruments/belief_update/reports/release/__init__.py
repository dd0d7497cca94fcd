"""A study's answers as training and test rows."""
