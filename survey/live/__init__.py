"""What a running study looks like: one snapshot for all who look, made from rows, and shown by pages and commands."""
