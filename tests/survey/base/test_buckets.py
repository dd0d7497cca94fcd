"""Files in an S3 bucket: whole or not there, noticed where changed or lost, found by other machines."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from survey.exceptions import StorageAway, StorageRefused
from survey.operation import doctor
from survey.services.base import files
from survey.storage.outages import is_outage
from tests.buckets import TestBucket, use

NOBODY = "http://127.0.0.1:9"  # The port where whatever comes is thrown away: here nobody listens.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "member"
    made.mkdir()
    (made / "weights").write_bytes(np.random.default_rng().bytes(5000))
    (made / "config.json").write_text("{}")
    return made


def failing_at(operation: str, number: int, exc: Exception, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let this call of this operation fail; returns a list that fills with the names of all calls."""
    from botocore.client import BaseClient

    call, calls, lock = BaseClient._make_api_call, [], threading.Lock()

    def counted(self: Any, name: str, arguments: Any) -> Any:
        with lock:
            calls.append(name)
            fails = name == operation and calls.count(operation) == number
        if fails:
            raise exc
        return call(self, name, arguments)

    monkeypatch.setattr(BaseClient, "_make_api_call", counted)
    return calls


def test_an_array_comes_back_with_its_types_and_lies_under_its_hash(bucket: TestBucket) -> None:
    rows = np.array([(1, 0.5), (2, 0.25)], dtype=[("question", "<i4"), ("score", "<f4")])
    sha256 = files.store_array(rows)
    loaded = files.load_array(sha256)
    assert loaded.dtype == rows.dtype and (loaded == rows).all()
    assert bucket.objects() == [f"hunch/files/{sha256[:2]}/{sha256}"]
    assert files.names_stored() == {sha256} and files.is_stored(sha256)
    with files.opened(sha256) as (file, size):
        assert len(file.read()) == size > 100
    assert files.local_folder() is None


def test_a_changed_object_is_noticed_and_mended_when_it_is_stored_again(bucket: TestBucket) -> None:
    sha256 = files.store_array(np.arange(11))
    bucket.put(sha256, b"other")
    assert not files.is_stored(sha256)
    with pytest.raises(ValueError, match=f"{sha256} has changed"):
        files.load_array(sha256)
    assert files.store_array(np.arange(11)) == sha256
    assert files.load_array(sha256).tolist() == list(range(11))


def test_a_lost_object_is_named(bucket: TestBucket, folder: Path) -> None:
    stored = files.store_folder(folder)
    bucket.delete(stored["weights"])
    assert not files.is_stored(stored["weights"])
    with pytest.raises(FileNotFoundError) as lost:
        files.folder_of(stored)
    assert stored["weights"] in lost.value.filename
    with pytest.raises(FileNotFoundError):
        files.load_array(stored["weights"])


@pytest.mark.thorough
def test_another_machine_finds_a_folder_and_fetches_it_once(
    bucket: TestBucket,
    folder: Path,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    stored = files.store_folder(folder)
    use(bucket.url, settings, monkeypatch, tmp_path / "another")
    local = files.folder_of(stored)
    assert local.is_relative_to(tmp_path / "another")
    assert {path.name: path.read_bytes() for path in local.iterdir()} == {
        path.name: path.read_bytes() for path in folder.iterdir()
    }
    monkeypatch.setattr(files, "fetch", None)
    assert files.folder_of(stored) == local
    monkeypatch.undo()
    (local / "weights").write_bytes(b"damaged")
    assert files.sha256_of(files.folder_of(stored) / "weights") == stored["weights"]


@pytest.mark.thorough
def test_two_workers_that_store_the_same_content_store_one_object(bucket: TestBucket, folder: Path) -> None:
    stored_files: list[dict[str, str]] = []
    both = [threading.Thread(target=lambda: stored_files.append(files.store_folder(folder))) for _worker in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(timeout=120)
    assert stored_files == [stored_files[0]] * 2 and len(bucket.objects()) == 2
    assert files.folder_of(stored_files[0]).is_dir()


@pytest.mark.thorough
def test_an_upload_that_breaks_off_leaves_nothing_and_is_an_outage(
    bucket: TestBucket,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when a worker dies, or the network: a part of a large file is no object."""
    from botocore.exceptions import EndpointConnectionError

    large = tmp_path / "large"
    large.write_bytes(np.random.default_rng(1).bytes(17 * 1024 * 1024))
    with monkeypatch.context() as patched:
        calls = failing_at("UploadPart", 2, EndpointConnectionError(endpoint_url=bucket.server), patched)
        with pytest.raises(StorageAway, match="cannot be reached now") as away:
            files.store(large)
    assert "CreateMultipartUpload" in calls and "CompleteMultipartUpload" not in calls
    assert is_outage(away.value) and bucket.objects() == []
    sha256 = files.store(large)
    assert files.is_stored(sha256) and bucket.objects() == [f"hunch/files/{sha256[:2]}/{sha256}"]


def test_an_object_that_goes_away_while_it_is_read_is_missing(
    bucket: TestBucket,
) -> None:
    sha256 = files.store_array(np.arange(3))

    def read() -> bytes:
        with files.opened(sha256) as (file, _size):
            bucket.delete(sha256)
            return file.read()

    with pytest.raises(FileNotFoundError) as lost:
        read()
    assert sha256 in lost.value.filename


def test_a_server_that_is_away_is_said_and_hides_no_file(
    bucket: TestBucket,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    use(f"s3://{bucket.name}?endpoint={NOBODY}&region=eu-central-1", settings, monkeypatch, tmp_path / "machine")
    for ask in (files.check_storage, files.names_stored, lambda: files.is_stored("0" * 64), files.probe):
        with pytest.raises(StorageAway, match=r"HUNCH_STORAGE_URL: s3://hunch-.* cannot be reached now") as away:
            ask()
        assert is_outage(away.value) and "secret" not in str(away.value)
    (line,) = doctor.LOOKS["files"]("files")
    assert line.grade is doctor.Grade.BROKEN and NOBODY in line.what and "check its address" in line.to_do


@pytest.mark.parametrize("fault", ["no such bucket", "no credentials"])
def test_a_bucket_that_refuses_is_said_with_what_to_check(
    fault: str,
    bucket: TestBucket,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    url = bucket.url
    if fault == "no such bucket":
        url = url.replace(bucket.name, "no-such-bucket")
    else:
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
    use(url, settings, monkeypatch, tmp_path / "machine")
    for ask in (files.check_storage, files.probe, lambda: files.store_array(np.arange(3))):
        with pytest.raises(StorageRefused, match=r"refuses us .*; check the bucket, the region, AWS_ACCESS_KEY_ID"):
            ask()
    (line,) = doctor.LOOKS["files"]("files")
    assert line.grade is doctor.Grade.BROKEN and "refuses us" in line.what and "AWS_ACCESS_KEY_ID" in line.to_do


def test_the_doctor_writes_reads_and_deletes_a_probe(
    bucket: TestBucket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = failing_at("nothing", 0, RuntimeError(), monkeypatch)
    (line,) = doctor.LOOKS["files"]("files")
    assert line.grade is doctor.Grade.OK and f"s3://{bucket.name}/hunch/files" in line.what
    assert {"PutObject", "GetObject", "DeleteObject"} <= set(calls) and bucket.objects() == []


def test_a_bucket_that_keeps_what_was_deleted_is_broken(
    bucket: TestBucket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("survey.storage.s3_storage.Bucket.delete", lambda self, name: None)
    (line,) = doctor.LOOKS["files"]("files")
    assert line.grade is doctor.Grade.BROKEN and "what was deleted is still there" in line.what
