"""What other policies of a study would have found."""
