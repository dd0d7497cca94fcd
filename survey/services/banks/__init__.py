"""Banks of questions: importing, flags, which questions a study draws from, what language models answered."""
