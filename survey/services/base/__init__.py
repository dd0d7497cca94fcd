"""What all services need: seeds, hashes, stored files, locks, the audit. Imports contracts, models and below."""
