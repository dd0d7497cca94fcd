"""A bucket of a test's own, for tests that ask for it."""

from tests.buckets import bucket, s3

__all__ = ["bucket", "s3"]
