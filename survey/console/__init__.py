"""What the commands share: their base class, tables in plain text, progress bars."""
