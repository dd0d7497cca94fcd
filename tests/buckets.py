"""A bucket of a test's own, which HUNCH_STORAGE_URL names. A fixture of the tests that import it."""

import functools
import importlib.util
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from survey import settings as readers
from tests.servers import s3_server


@dataclass(frozen=True)
class TestBucket:
    server: str
    name: str
    client: Any

    __test__ = False

    @property
    def url(self) -> str:
        return f"s3://{self.name}/hunch/files?endpoint={self.server}&region=eu-central-1"

    def objects(self) -> list[str]:
        return [entry["Key"] for entry in self.client.list_objects_v2(Bucket=self.name).get("Contents", ())]

    def put(self, sha256: str, content: bytes) -> None:
        self.client.put_object(Bucket=self.name, Key=f"hunch/files/{sha256[:2]}/{sha256}", Body=content)

    def delete(self, sha256: str) -> None:
        self.client.delete_object(Bucket=self.name, Key=f"hunch/files/{sha256[:2]}/{sha256}")


def use(url: str, settings: Any, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """The settings of a machine with this HUNCH_STORAGE_URL and this HUNCH_VAR."""
    monkeypatch.setenv("HUNCH_STORAGE_URL", url)
    folder.mkdir(exist_ok=True)
    settings.HUNCH_VAR = folder
    settings.HUNCH_STORAGE_URL, storage = readers.read_storage("HUNCH_STORAGE_URL", folder / "files")
    settings.STORAGES = {**settings.STORAGES, "default": storage}


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    from tests.conftest import unavailable

    if any(importlib.util.find_spec(name) is None for name in ("moto", "flask", "flask_cors", "storages")):
        unavailable("files in a bucket: install moto, flask, flask-cors, boto3 and django-storages")
    from botocore import loaders

    # Each machine of a test makes clients of its own, and each of these would read the description of S3 again.
    with mock.patch.object(loaders, "create_loader", functools.cache(loaders.create_loader)), s3_server() as address:
        yield address


@pytest.fixture
def bucket(s3: str, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TestBucket]:
    import boto3

    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-of-the-tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-tests")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    client = boto3.client("s3", endpoint_url=s3, region_name="eu-central-1")
    made = TestBucket(s3, f"hunch-{uuid.uuid4().hex}", client)
    client.create_bucket(Bucket=made.name, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    use(made.url, settings, monkeypatch, tmp_path / "machine")
    return made
