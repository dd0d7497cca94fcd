"""What cloze norms say: numpy alone, without the database."""
