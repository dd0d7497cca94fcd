"""What a stage draws from and what it draws: candidates, drafts, plans."""
