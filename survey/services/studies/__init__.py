"""Creating, checking and changing studies."""
