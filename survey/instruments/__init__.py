"""What is asked: one folder for each instrument, a Django app with the same files each. The core imports none."""
