"""Content-addressed files: whole or not there, and a changed byte is noticed."""

from pathlib import Path

import numpy as np
import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from survey.services.base import files


def path_of(sha256: str) -> Path:
    return Path(default_storage.path(f"{sha256[:2]}/{sha256}"))


def change_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "member"
    made.mkdir()
    (made / "weights").write_bytes(np.random.default_rng().bytes(5000))
    (made / "config.json").write_text("{}")
    return made


def test_an_array_comes_back_with_its_types() -> None:
    rows = np.array([(1, 0.5), (2, 0.25)], dtype=[("question", "<i4"), ("score", "<f4")])
    loaded = files.load_array(files.store_array(rows))
    assert loaded.dtype == rows.dtype and (loaded == rows).all()


def test_an_array_of_objects_is_not_stored() -> None:
    with pytest.raises(ValueError, match="pickle"):
        files.store_array(np.array([object()]))


def test_a_changed_byte_of_an_array_is_noticed() -> None:
    sha256 = files.store_array(np.arange(11))
    change_a_byte(path_of(sha256))
    with pytest.raises(ValueError, match=f"{sha256} has changed"):
        files.load_array(sha256)


def test_storing_the_same_content_again_keeps_one_file(folder: Path) -> None:
    assert files.store(folder / "weights") == files.store(folder / "weights")


def test_what_a_dying_worker_left_half_written_is_written_again(folder: Path) -> None:
    sha256 = files.sha256_of(folder / "weights")
    default_storage.save(f"{sha256[:2]}/{sha256}", ContentFile((folder / "weights").read_bytes()[:100]))
    assert files.store(folder / "weights") == sha256
    assert path_of(sha256).read_bytes() == (folder / "weights").read_bytes()


def test_a_folder_comes_back_whole_and_is_fetched_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = files.store_folder(folder)
    assert set(stored) == {"weights", "config.json"}
    local = files.folder_of(stored)
    assert {path.name: path.read_bytes() for path in local.iterdir()} == {
        path.name: path.read_bytes() for path in folder.iterdir()
    }
    monkeypatch.setattr(files, "fetch", None)
    assert files.folder_of(stored) == local


def test_a_changed_byte_in_the_local_copy_is_mended_from_the_storage(folder: Path) -> None:
    stored = files.store_folder(folder)
    change_a_byte(files.folder_of(stored) / "weights")
    assert files.sha256_of(files.folder_of(stored) / "weights") == stored["weights"]


def test_a_changed_byte_in_the_storage_is_noticed_and_leaves_no_folder(folder: Path) -> None:
    stored = files.store_folder(folder)
    change_a_byte(path_of(stored["weights"]))
    for _time in range(2):
        with pytest.raises(ValueError, match="has changed: restore it from a backup"):
            files.folder_of(stored)


def test_a_file_that_is_missing_is_said(folder: Path) -> None:
    stored = files.store_folder(folder)
    path_of(stored["weights"]).unlink()
    with pytest.raises(FileNotFoundError):
        files.folder_of(stored)


@pytest.mark.parametrize("name", ["../escape", "/etc/passwd", "a/b"])
def test_a_name_that_leaves_the_folder_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a plain file name"):
        files.folder_of({name: "0" * 64})
