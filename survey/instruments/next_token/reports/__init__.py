"""The reports of next-token studies."""
