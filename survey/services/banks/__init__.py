"""Banks of questions: importing, flags, which questions a study draws from, and language models' answers."""
