"""What guesses of next tokens show, from arrays alone: no row of the database is read here."""
