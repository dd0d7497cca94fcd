"""Settings refuse what they cannot use, name the variable, and make keys that only we can read."""

import concurrent.futures
import importlib.util
import os
import runpy
import stat
import subprocess
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from django.core.checks import CheckMessage
from django.core.checks.registry import registry
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import SystemCheckError

from survey import settings as readers
from survey import system_checks
from survey.management.commands import up

ROOT = Path(__file__).parents[2]
PRODUCTION = {
    "HUNCH_ENV": "production",
    "SECRET_KEY": "x" * 60,
    "HUNCH_IDENTITY_KEY": "A" * 43 + "=",
    "HUNCH_HOSTS": "study.example.org",
    "DATABASE_URL": "postgresql://hunch:secret@db:5432/hunch",
}


def load(folder: Path, wanted: str = "settings.HUNCH_ENV", **environment: str) -> subprocess.CompletedProcess[str]:
    """Settings in a separate process, read as at every start."""
    variables = {"PATH": os.environ["PATH"], "HUNCH_VAR": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", f"from survey import settings; print({wanted})"],
        cwd=ROOT,
        env={**variables, **environment},
        capture_output=True,
        text=True,
    )


def read(folder: Path, **environment: str) -> SimpleNamespace:
    """The settings that the same environment gives, executed again in this process."""
    with mock.patch.dict(os.environ, {"HUNCH_VAR": str(folder), **environment}, clear=True):
        return SimpleNamespace(**runpy.run_path(readers.__file__))


def refusal(folder: Path, **environment: str) -> str:
    """What a start with that environment prints."""
    with pytest.raises(ImproperlyConfigured) as refused:
        read(folder, **environment)
    return "".join(traceback.format_exception(refused.value))


def test_it_starts_with_nothing_set_on_loopback_only(tmp_path: Path) -> None:
    run = load(tmp_path / "var", "settings.ALLOWED_HOSTS, settings.DEBUG, settings.DATABASES['default']['ENGINE']")
    assert run.stdout.strip() == "['localhost', '127.0.0.1', '[::1]'] False django.db.backends.sqlite3"
    assert stat.S_IMODE((tmp_path / "var").stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["SECRET_KEY", "HUNCH_IDENTITY_KEY", "HUNCH_HOSTS", "DATABASE_URL"])
def test_production_refuses_to_start_without(name: str, tmp_path: Path) -> None:
    said = refusal(tmp_path, **{key: value for key, value in PRODUCTION.items() if key != name})
    assert f"ImproperlyConfigured: {name}" in said


def test_production_starts_with_all_of_them_and_insists_on_tls(tmp_path: Path) -> None:
    settings = read(tmp_path, **PRODUCTION)
    assert settings.SECURE_SSL_REDIRECT is settings.SESSION_COOKIE_SECURE is True
    assert settings.ALLOWED_HOSTS == ["study.example.org"]


def test_a_bad_value_ends_a_process_that_starts(tmp_path: Path) -> None:
    run = load(tmp_path, HUNCH_PORT="eighty")
    assert run.returncode != 0 and "ImproperlyConfigured: HUNCH_PORT" in run.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SECRET_KEY", "short"),
        ("HUNCH_IDENTITY_KEY", "not base64"),
        ("HUNCH_IDENTITY_KEY", "AAAA"),
        ("HUNCH_HOSTS", "*"),
        ("HUNCH_HOSTS", "a.example.org,"),
        ("DATABASE_URL", "sqlite:///here.sqlite3"),
    ],
)
def test_production_refuses_a_weak(name: str, value: str, tmp_path: Path) -> None:
    assert f"ImproperlyConfigured: {name}" in refusal(tmp_path, **{**PRODUCTION, name: value})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HUNCH_ENV", "prod"),
        ("HUNCH_PORT", "eighty"),
        ("HUNCH_PORT", "70000"),
        ("HUNCH_BEHIND_PROXY", "perhaps"),
        ("HUNCH_LOG_LEVEL", "LOUD"),
        ("HUNCH_TOTP", "never"),
        ("HUNCH_HOSTS", "study.example.org"),
        ("DATABASE_URL", "mysql://localhost/hunch"),
        ("DATABASE_URL", "sqlite://:memory:"),
        ("REDIS_URL", "http://localhost"),
        ("HUNCH_COMPUTE", "threads"),
        ("HUNCH_COMPUTE", "tcp://10.0.0.1:8786"),
        ("HUNCH_COMPUTE", "dask://10.0.0.1"),
        ("HUNCH_COMPUTE", "dask://:8786"),
        ("HUNCH_COMPUTE", "dask://10.0.0.1:eight"),
        ("HUNCH_COMPUTE", "dask://10.0.0.1:99999"),
        ("HUNCH_COMPUTE", "dask://10.0.0.1:8786/more"),
        ("HUNCH_COMPUTE", "dask://user:hunter2@10.0.0.1:8786"),
        ("HUNCH_STORAGE_URL", "/srv/files"),
        ("HUNCH_STORAGE_URL", "file://srv/files"),
        ("HUNCH_STORAGE_URL", "file:///srv/../etc"),
        ("HUNCH_STORAGE_URL", "file:///srv/files?mode=0777"),
        ("HUNCH_STORAGE_URL", "gs://files"),
        ("HUNCH_STORAGE_URL", "s3://"),
        ("HUNCH_STORAGE_URL", "s3:///files"),
        ("HUNCH_STORAGE_URL", "s3://Files"),
        ("HUNCH_STORAGE_URL", "s3://files/../other"),
        ("HUNCH_STORAGE_URL", "s3://files:9000/folder"),
        ("HUNCH_STORAGE_URL", "s3://key:hunter2@files/folder"),
        ("HUNCH_STORAGE_URL", "s3://files?endpoint=https://key:hunter2@minio.example.org"),
        ("HUNCH_STORAGE_URL", "s3://files?endpoint=https://key%3Ahunter2%40minio.example.org"),
        ("HUNCH_STORAGE_URL", "s3://files?secret_key=hunter2"),
        ("HUNCH_STORAGE_URL", "s3://files?endpoint=minio.example.org"),
        ("HUNCH_STORAGE_URL", "s3://files?endpoint="),
        ("HUNCH_STORAGE_URL", "s3://files?region=eu&region=us"),
        ("HUNCH_STORAGE_URL", "s3://files?region=eu central"),
    ],
)
def test_it_refuses_a_bad_value_of(name: str, value: str, tmp_path: Path) -> None:
    said = refusal(tmp_path, **{name: value})
    assert f"ImproperlyConfigured: {name}" in said
    assert "hunter2" not in said


@pytest.mark.parametrize("value", ["dask://10.0.0.1:8786", "dask+tls://[fd00::1]:8786"])
def test_a_dask_cluster_can_be_named(value: str, tmp_path: Path) -> None:
    assert value == read(tmp_path, HUNCH_COMPUTE=value).HUNCH_COMPUTE


def test_nothing_is_loaded_for_a_cluster_or_a_bucket(tmp_path: Path) -> None:
    chosen = {"HUNCH_COMPUTE": "dask+tls://[fd00::1]:8786", "HUNCH_STORAGE_URL": "s3://files?region=eu-central-1"}
    run = load(tmp_path, "sorted({'distributed', 'storages', 'boto3'} & set(__import__('sys').modules))", **chosen)
    assert run.stdout.strip() == "[]", run.stderr


@pytest.mark.parametrize(
    ("value", "shown", "options"),
    [
        ("", "file://{var}/files", {"location": "{var}/files"}),
        ("file:///srv/the%20files", "file:///srv/the%20files", {"location": "/srv/the files"}),
        ("s3://files", "s3://files", {"bucket_name": "files", "location": "", "endpoint_url": "None"}),
        (
            "s3://files/of/hunch/?endpoint=https://minio.example.org:9000&region=eu-central-1",
            "s3://files/of/hunch at https://minio.example.org:9000",
            {
                "bucket_name": "files",
                "location": "of/hunch",
                "endpoint_url": "https://minio.example.org:9000",
                "region_name": "eu-central-1",
            },
        ),
    ],
)
def test_files_lie_where_the_url_says(value: str, shown: str, options: dict[str, str], tmp_path: Path) -> None:
    settings = read(tmp_path, HUNCH_STORAGE_URL=value)
    assert shown.format(var=tmp_path) == settings.HUNCH_STORAGE_URL
    storage_options = settings.STORAGES["default"]["OPTIONS"]
    for name, expected in options.items():
        assert str(storage_options[name]) == expected.format(var=tmp_path)


def test_a_folder_that_cannot_be_written_stops_the_start(tmp_path: Path, settings: Any) -> None:
    (tmp_path / "file").write_text("no folder")
    assert system_checks.folder_of_files_is_writable in registry.get_checks()

    def checked(folder: Path) -> list[CheckMessage]:
        loaded = read(tmp_path / "var", HUNCH_STORAGE_URL=folder.as_uri())
        settings.HUNCH_STORAGE_URL, settings.STORAGES = loaded.HUNCH_STORAGE_URL, loaded.STORAGES
        return system_checks.folder_of_files_is_writable()

    (error,) = checked(tmp_path / "file" / "below")
    assert (error.id, error.is_serious()) == ("hunch.E005", True)
    assert error.msg.startswith(f"HUNCH_STORAGE_URL: {tmp_path}/file/below cannot be written")
    with pytest.raises(SystemCheckError, match=r"hunch\.E005"):
        up.Command().check(tags=up.Command.requires_system_checks)
    assert checked(tmp_path / "made" / "for us") == []
    up.Command().check(tags=up.Command.requires_system_checks)
    assert stat.S_IMODE((tmp_path / "made" / "for us").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("module", "extra", "name", "value"),
    [
        ("distributed", "dask", "HUNCH_COMPUTE", "dask://10.0.0.1:8786"),
        ("storages", "s3", "HUNCH_STORAGE_URL", "s3://files"),
        ("boto3", "s3", "HUNCH_STORAGE_URL", "s3://files"),
    ],
)
def test_it_says_which_extra_is_missing(module: str, extra: str, name: str, value: str, tmp_path: Path) -> None:
    find = importlib.util.find_spec
    with mock.patch.object(importlib.util, "find_spec", lambda wanted: None if wanted == module else find(wanted)):
        message = refusal(tmp_path, **{name: value})
    said = f"ImproperlyConfigured: {name}: needs a package that is not installed; "
    assert f'{said}run: pip install "hunch[{extra}]"' in message


def test_keys_are_made_once_and_only_we_can_read_them(tmp_path: Path) -> None:
    path = tmp_path / "key"
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        keys = {future.result() for future in [pool.submit(readers.read_or_make_key, path) for _ in range(16)]}
    assert keys == {path.read_text().strip()}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["key"]
    assert readers.check_identity_key(keys.pop())


def test_a_key_that_is_in_use_is_kept(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("old\n")
    assert readers.read_or_make_key(tmp_path / "key") == "old"


def test_a_relative_sqlite_path_is_taken_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert readers.read_database("sqlite:///my.sqlite3")["NAME"] == str(tmp_path / "my.sqlite3")
    assert readers.read_database(f"sqlite:///{tmp_path}/other.sqlite3")["NAME"] == str(tmp_path / "other.sqlite3")


def test_a_postgresql_socket_folder_reaches_the_driver() -> None:
    config = readers.read_database("postgresql://postgres:@/study?host=/run/pg")
    assert (config["ENGINE"], config["NAME"], config["OPTIONS"]) == (
        "django.db.backends.postgresql",
        "study",
        {"host": "/run/pg"},
    )


@pytest.mark.parametrize(
    ("url", "broker"),
    [
        ("redis://:secret@cache:6379/3", "redis://:secret@cache:6379/3"),
        ("unix:///run/redis.sock", "redis+socket:///run/redis.sock"),
        ("unix:///run/redis.sock?db=2", "redis+socket:///run/redis.sock?virtual_host=2"),
    ],
)
def test_celery_is_given_the_same_redis(url: str, broker: str) -> None:
    assert readers.celery_broker_url(url) == broker


def test_a_deep_checkout_gets_a_socket_folder_with_a_short_path(tmp_path: Path) -> None:
    shallow = Path("/srv/hunch/var/run")
    assert readers.short_run_folder(shallow) == shallow
    deep = tmp_path / ("very-deep-" * 12)
    short = readers.short_run_folder(deep)
    assert len(str(short / "redis.sock")) <= 100
    assert short != readers.short_run_folder(deep / "another")


def test_a_flag_is_true_or_false_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUNCH_BEHIND_PROXY", "Yes")
    assert readers.read_flag("HUNCH_BEHIND_PROXY", default=False) is True
    monkeypatch.setenv("HUNCH_BEHIND_PROXY", "on-ish")
    with pytest.raises(ImproperlyConfigured, match="HUNCH_BEHIND_PROXY"):
        readers.read_flag("HUNCH_BEHIND_PROXY", default=False)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores can be chosen on Linux only")
def test_one_core_has_one_process_of_web(tmp_path: Path) -> None:
    """A second one would only take turns with it."""
    cores = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(cores)})
        assert read(tmp_path).HUNCH_WEB_WORKERS == 1
        assert read(tmp_path, HUNCH_WEB_WORKERS="3").HUNCH_WEB_WORKERS == 3
    finally:
        os.sched_setaffinity(0, cores)
    assert min(2, len(cores)) == read(tmp_path).HUNCH_WEB_WORKERS
