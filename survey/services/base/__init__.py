"""What every room needs: seeds, hashes, stored files, locks, the audit. Imports contracts, models and below."""
