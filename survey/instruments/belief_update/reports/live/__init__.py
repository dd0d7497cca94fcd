"""What is known while answers come in."""
