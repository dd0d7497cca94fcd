"""docker-compose.yml without a container engine: each of our services, by its own command and environment.

Only the addresses of PostgreSQL and Redis, the folders and the port are local. Each service must become healthy by its
own health check.
"""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from tests.servers import TETHER

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
OURS = {name: service for name, service in COMPOSE["services"].items() if service["image"].startswith("hunch-")}
LASTING = sorted(name for name in OURS if name != "migrate")
SECRETS = {
    "SECRET_KEY": "a-key-for-this-test-alone-" * 3,
    "HUNCH_IDENTITY_KEY": "A" * 43 + "=",
    "HUNCH_HOSTS": "study.example.org",
    "POSTGRES_PASSWORD": "secret",
}


def interpolate(value: Any, variables: dict[str, str]) -> str:
    """${NAME}, ${NAME:-default} and ${NAME:?message}, as compose reads them."""

    def replace(found: re.Match[str]) -> str:
        name, kind, rest = found.groups()
        if variables.get(name):
            return variables[name]
        if kind == ":?":
            raise KeyError(f"{name}: {rest}")
        return rest or ""

    return re.sub(r"\$\{(\w+)(:[?-])?([^}]*)\}", replace, str(value))


def environment_of(name: str, variables: dict[str, str]) -> dict[str, str]:
    return {key: interpolate(value, variables) for key, value in OURS[name]["environment"].items()}


@pytest.fixture(scope="module")
def local(
    postgresql_server: str, redis_server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """The settings that replace the containers' network."""
    name = f"hunch_compose_{os.getpid()}"
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    separate = "?db=9" if redis_server.startswith("unix:") else ""
    yield {
        "DATABASE_URL": re.sub(r"(//[^/]*)/[^?]*", rf"\1/{name}", postgresql_server),
        "REDIS_URL": redis_server + separate,
        "HUNCH_VAR": str(tmp_path_factory.mktemp("compose")),
        "HUNCH_PORT": str(port),
    }
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def local_environment(name: str, local: dict[str, str]) -> dict[str, str]:
    described = environment_of(name, SECRETS)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    heartbeat = {"HUNCH_HEARTBEAT": f"{local['HUNCH_VAR']}/{name}.heartbeat"} if "HUNCH_HEARTBEAT" in described else {}
    return {"PATH": path, **described, **local, **heartbeat}


def is_healthy(name: str, local: dict[str, str]) -> bool:
    kind, *command = OURS[name]["healthcheck"]["test"]
    assert kind == "CMD"
    return subprocess.run(command, cwd=ROOT, env=local_environment(name, local), capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def services(local: dict[str, str]) -> Iterator[dict[str, "subprocess.Popen[bytes]"]]:
    """The database is migrated by its own service; then all others run."""
    migrate = subprocess.run(
        OURS["migrate"]["command"],
        cwd=ROOT,
        env=local_environment("migrate", local),
        capture_output=True,
        text=True,
    )
    assert migrate.returncode == 0, migrate.stdout + migrate.stderr
    assert not any(is_healthy(name, local) for name in LASTING), "healthy before it has started"
    running = {}
    for name in LASTING:
        with Path(local["HUNCH_VAR"], f"{name}.log").open("wb") as log:
            running[name] = subprocess.Popen(
                [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *OURS[name]["command"]],
                cwd=ROOT,
                env=local_environment(name, local),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
    yield running
    for process in running.values():
        process.terminate()
    for process in running.values():
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.mark.slow
@pytest.mark.redis
@pytest.mark.parametrize("name", LASTING)
def test_each_service_becomes_healthy_by_its_own_check(
    name: str, services: dict[str, "subprocess.Popen[bytes]"], local: dict[str, str]
) -> None:
    deadline = time.monotonic() + 90
    while not is_healthy(name, local):
        log = Path(local["HUNCH_VAR"], f"{name}.log").read_text()
        assert services[name].poll() is None, log
        assert time.monotonic() < deadline, log
        time.sleep(0.5)


def test_every_part_is_described() -> None:
    assert set(COMPOSE["services"]) == {"db", "redis", "migrate", "web", "worker", "worker-ml", "beat"}
    assert all("healthcheck" in COMPOSE["services"][name] for name in {*LASTING, "db", "redis"})


@pytest.mark.parametrize("missing", sorted(SECRETS))
def test_nothing_starts_without(missing: str) -> None:
    given = {name: value for name, value in SECRETS.items() if name != missing}
    for name in OURS:
        with pytest.raises(KeyError, match=missing):
            environment_of(name, given)


def test_only_the_ml_worker_carries_torch() -> None:
    builds = {service["image"]: service["build"]["args"] for service in OURS.values() if "build" in service}
    assert {image: args["WITH_TORCH"] for image, args in builds.items()} == {"hunch-web": "0", "hunch-ml": "1"}
    assert [name for name, service in OURS.items() if service["image"] == "hunch-ml"] == ["worker-ml"]


def test_only_the_web_is_reached_from_outside_and_only_by_loopback() -> None:
    assert {name: service["ports"] for name, service in COMPOSE["services"].items() if "ports" in service} == {
        "web": ["127.0.0.1:8000:8000"]
    }
