"""What comparisons of next tokens say: numpy alone, without the database."""
