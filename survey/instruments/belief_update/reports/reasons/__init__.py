"""What people wrote about their beliefs, and how it was coded."""
