"""Files in an S3 bucket, where HUNCH_STORAGE_URL names one. Loaded with the first file, by its name in `settings`.

Credentials are boto3's: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the environment, or the machine's own role.
"""

from typing import Any

from botocore.config import Config
from storages.backends.s3 import S3Storage

IN_MEMORY = 8 * 1024 * 1024  # bytes of a file that is read; more go to a temporary file


class Bucket(S3Storage):
    """A bucket, or a folder in one. An object is there whole or not at all, and never public."""

    def __init__(self, *, bucket_name: str, location: str, endpoint_url: str | None, region_name: str | None) -> None:
        how: dict[str, Any] = {}
        if endpoint_url:
            # Servers that are not Amazon's: not all know its newer checksums, and buckets have no host names there.
            how = {
                "request_checksum_calculation": "when_required",
                "response_checksum_validation": "when_required",
                "s3": {"addressing_style": "path"},
            }
        super().__init__(
            bucket_name=bucket_name,
            location=location,
            endpoint_url=endpoint_url,
            region_name=region_name,
            default_acl=None,
            # A file is named by its content, so what replaces it is the same.
            file_overwrite=True,
            gzip=False,
            max_memory_size=IN_MEMORY,
            client_config=Config(
                signature_version="s3v4",
                connect_timeout=10,
                read_timeout=60,
                retries={"max_attempts": 4, "mode": "standard"},
                **how,
            ),
        )
