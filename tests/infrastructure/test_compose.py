"""docker-compose.yml without a container engine: each of our services, by its own command and environment.

Only the addresses of PostgreSQL and Redis, the folders and the port are local. Each service must become healthy by its
own health check. Where this machine allows it, each runs as the container's user without capabilities, on a read-only
root with the container's mounts (see containers.py).
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

from tests.architecture.test_docs import OF_COMPOSE
from tests.conftest import NOT_TESTED
from tests.servers import DIE_WITH_PARENT

from . import containers

ROOT = Path(__file__).parents[2]
COMPOSE_TEXT = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(COMPOSE_TEXT)
OPERATION = (ROOT / "docs" / "operation.md").read_text(encoding="utf-8")
OURS = {name: service for name, service in COMPOSE["services"].items() if service["image"].startswith("hunch-")}
# Those of a profile run the same command as their neighbour.
LASTING = sorted(name for name, service in OURS.items() if name != "migrate" and "profiles" not in service)
SECRETS = {
    "SECRET_KEY": "a-key-for-this-test-alone-" * 3,
    "HUNCH_IDENTITY_KEY": "A" * 43 + "=",
    "HUNCH_HOSTS": "study.example.org",
    "POSTGRES_PASSWORD": "secret",
}


def interpolate(value: Any, variables: dict[str, str]) -> str:
    """${NAME}, ${NAME:-default} and ${NAME:?message}, as compose reads them."""

    def replace(match: re.Match[str]) -> str:
        name, kind, rest = match.groups()
        if variables.get(name):
            return variables[name]
        if kind == ":?":
            raise KeyError(f"{name}: {rest}")
        return rest or ""

    return re.sub(r"\$\{(\w+)(:[?-])?([^}]*)\}", replace, str(value))


def environment_of(name: str, variables: dict[str, str]) -> dict[str, str]:
    return {key: interpolate(value, variables) for key, value in OURS[name]["environment"].items()}


@pytest.fixture
def local(postgresql_server: str, redis_server: str, tmp_path: Path) -> Iterator[dict[str, str]]:
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
        "HUNCH_VAR": str(tmp_path),
        "HUNCH_PORT": str(port),
        "HUNCH_WEB_WORKERS": "1",
    }
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def local_environment(name: str, local: dict[str, str]) -> dict[str, str]:
    described = environment_of(name, SECRETS)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    heartbeat = {"HUNCH_HEARTBEAT": f"{local['HUNCH_VAR']}/{name}.heartbeat"} if "HUNCH_HEARTBEAT" in described else {}
    return {"PATH": path, **described, **local, **heartbeat}


def command_line(name: str, command: list[str], local: dict[str, str]) -> dict[str, Any]:
    """How to run a command of the service, as arguments of subprocess."""
    environment = local_environment(name, local)
    if containers.why_not():
        return {"args": command, "cwd": ROOT, "env": environment}
    service = OURS[name]
    mounts = containers.mounts_of(service)
    outside, inside = local["HUNCH_VAR"], service["environment"]["HUNCH_VAR"]
    visible = {}
    for variable, sockets in {"DATABASE_URL": r"host=(/[^&]+)", "REDIS_URL": r"unix://(/[^?]+)"}.items():
        if place := re.search(sockets, environment[variable]):
            # Its folder is closed to all others: the container sees the socket alone.
            socket_path = Path(place[1], ".s.PGSQL.5432") if Path(place[1]).is_dir() else Path(place[1])
            socket_path.chmod(0o777)
            seen = f"/sockets/{socket_path.name}"
            visible[seen] = str(socket_path)
            environment[variable] = environment[variable].replace(
                place[1], "/sockets" if Path(place[1]).is_dir() else seen
            )
    for variable in ("HUNCH_VAR", "HUNCH_HEARTBEAT"):
        if variable in environment:
            environment[variable] = environment[variable].replace(outside, inside)
    python = [sys.executable, *command[1:]] if command[0] == "python" else command
    args = containers.enclosed(python, mounts, user=containers.user_of(service), visible=visible, volume=outside)
    return {"args": args, "env": environment}


def has_begun(name: str, local: dict[str, str]) -> bool:
    """Whether it listens, or its heart beats: each look by its health check starts a process."""
    if beat := local_environment(name, local).get("HUNCH_HEARTBEAT"):
        return Path(beat).exists()
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(local["HUNCH_PORT"]))) == 0


def is_healthy(name: str, local: dict[str, str]) -> bool:
    kind, *command = OURS[name]["healthcheck"]["test"]
    assert kind == "CMD"
    return subprocess.run(**command_line(name, command, local), capture_output=True).returncode == 0


@pytest.fixture
def services(local: dict[str, str]) -> Iterator[dict[str, "subprocess.Popen[bytes]"]]:
    """The database is migrated by its own service; then all others run."""
    migrate = subprocess.run(
        **command_line("migrate", OURS["migrate"]["command"], local), capture_output=True, text=True
    )
    assert migrate.returncode == 0, migrate.stdout + migrate.stderr
    assert not any(is_healthy(name, local) for name in LASTING), "healthy before it has started"
    running = {}
    for name in LASTING:
        with Path(local["HUNCH_VAR"], f"{name}.log").open("wb") as log:
            how = command_line(name, OURS[name]["command"], local)
            how["args"] = [sys.executable, "-I", "-S", str(DIE_WITH_PARENT), str(os.getpid()), *how["args"]]
            running[name] = subprocess.Popen(**how, stdout=log, stderr=subprocess.STDOUT)
    yield running
    for process in running.values():
        process.terminate()
    for process in running.values():
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.redis
def test_each_service_becomes_healthy_by_its_own_check(
    services: dict[str, "subprocess.Popen[bytes]"], local: dict[str, str]
) -> None:
    """One test for all: parametrised, its cases would start all services once in each process that runs tests."""
    deadline = time.monotonic() + 240
    for name in LASTING:
        while not (has_begun(name, local) and is_healthy(name, local)):
            log = Path(local["HUNCH_VAR"], f"{name}.log").read_text()
            assert services[name].poll() is None, f"{name}: {log}"
            assert time.monotonic() < deadline, f"{name}: {log}"
            time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["", pytest.param("s3://bucket/folder", marks=pytest.mark.thorough)])
def test_the_tables_are_brought_up_to_date_as_the_containers_user(storage: str, tmp_path: Path) -> None:
    """Every other service waits for it. It gets as far as a database that does not answer."""
    if reason := containers.why_not():
        pytest.skip(f"{NOT_TESTED}what a container may write ({reason}): run this as root")
    local = {
        "DATABASE_URL": "postgresql://hunch@127.0.0.1:1/hunch",
        "HUNCH_VAR": str(tmp_path),
        "HUNCH_STORAGE_URL": storage,
    }
    migrate = subprocess.run(
        **command_line("migrate", OURS["migrate"]["command"], local), capture_output=True, text=True
    )
    assert "Connection refused" in migrate.stderr, migrate.stderr


@pytest.mark.parametrize("name", sorted(COMPOSE["services"]))
def test_every_container_may_write_where_something_is_mounted_for_it(name: str) -> None:
    service = COMPOSE["services"][name]
    uid, gid = containers.user_of(service)
    mounts = containers.mounts_of(service)
    assert len({mount.path for mount in mounts}) == len(mounts) > 0
    for mount in mounts:
        if uid == 0:  # It gives what is mounted to the user that it becomes.
            assert {"CHOWN", "DAC_OVERRIDE", "SETGID", "SETUID"} <= set(service["cap_add"])
        else:
            assert mount.is_read_only or mount.folder.may_be_written(uid, gid), f"{name}: {mount}"
    if name in OURS:
        written = {mount.path for mount in mounts}
        assert service["environment"]["HUNCH_VAR"] in written


def test_every_part_is_described() -> None:
    assert set(COMPOSE["services"]) == {
        *("db", "redis", "migrate", "web", "proxy", "worker", "worker-ml", "worker-collect", "beat"),
        *("web-scale", "worker-scale", "worker-ml-gpu", "worker-collect-gpu"),
    }
    assert all("healthcheck" in COMPOSE["services"][name] for name in {*LASTING, "db", "redis", "proxy"})


@pytest.mark.parametrize("missing", sorted(SECRETS))
def test_nothing_starts_without(missing: str) -> None:
    environment = {name: value for name, value in SECRETS.items() if name != missing}
    for name in OURS:
        with pytest.raises(KeyError, match=missing):
            environment_of(name, environment)


COMPUTING = ["worker-ml", "worker-collect", "worker-ml-gpu", "worker-collect-gpu"]


def test_only_workers_that_compute_carry_torch() -> None:
    builds = {service["image"]: service["build"]["args"] for service in OURS.values() if "build" in service}
    assert {image: args["WITH_TORCH"] for image, args in builds.items()} == {"hunch-web": "0", "hunch-ml": "1"}
    assert [name for name, service in OURS.items() if service["image"] == "hunch-ml"] == COMPUTING


def test_only_the_proxy_is_reached_from_outside() -> None:
    assert {name: service["ports"] for name, service in COMPOSE["services"].items() if "ports" in service} == {
        "proxy": ["80:80", "443:443"]
    }


@pytest.mark.parametrize("name", sorted(COMPOSE["services"]))
def test_every_container_is_closed_in_and_limited(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"] is True and "/tmp" in service["tmpfs"]
    assert service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"] and service["pids_limit"]
    assert service["logging"]["options"] == {"max-size": "10m", "max-file": "5"}
    assert not {"privileged", "network_mode", "pid", "ipc"} & set(service)
    # Ours start as an ordinary user already; those that start as root may only become somebody else.
    of_root = {"CHOWN", "DAC_OVERRIDE", "FOWNER", "NET_BIND_SERVICE", "SETGID", "SETUID"}
    assert set(service.get("cap_add", ())) <= (set() if name in OURS else of_root)


@pytest.mark.parametrize("name", ["db", "redis", "proxy"])
def test_what_others_built_is_pinned_by_its_digest(name: str) -> None:
    assert re.fullmatch(r"[a-z]+:[\d.]+@sha256:[0-9a-f]{64}", COMPOSE["services"][name]["image"])


def holders(secret: str) -> set[str]:
    return {
        name
        for name, service in COMPOSE["services"].items()
        if any(f"${{{secret}" in str(value) for value in service.get("environment", {}).values())
    }


WEB, WORKERS = {"web", "web-scale"}, {"worker", "worker-scale"}
# What not all of ours may have or need. All other settings go to all of them.
HOLDERS = {
    "HUNCH_PROLIFIC_TOKEN": {*WEB, *WORKERS, "beat"},
    "HUNCH_PROLIFIC_WEBHOOK_SECRET": WEB,
    "HUNCH_GENERIC_SECRET": WEB,
    "HUNCH_GENERIC_CLOSING_SECRET": WEB,
    "HUNCH_METRICS_TOKEN": WEB,
    "HUNCH_EMAIL_URL": {*WEB, *WORKERS, "beat"},  # web refuses receivers of e-mail where none is sent
    "HUNCH_ALERT_EMAILS": {*WORKERS, "beat"},
    "HUNCH_ALERT_WEBHOOK": {*WORKERS, "beat"},
    "HUNCH_ALERT_WEBHOOK_SECRET": {*WORKERS, "beat"},
    "HUNCH_PING_URL": {"beat"},
    "AWS_ACCESS_KEY_ID": {*WEB, *WORKERS, *COMPUTING, "beat"},
    "AWS_SECRET_ACCESS_KEY": {*WEB, *WORKERS, *COMPUTING, "beat"},
    "HUNCH_LLM_URL": set(COMPUTING),
    "HUNCH_LLM_KEY": set(COMPUTING),
    "HUNCH_LLM_MODEL": set(COMPUTING),
    "HUNCH_EMBEDDINGS_URL": set(COMPUTING),
    "HUNCH_EMBEDDINGS_KEY": set(COMPUTING),
    "HUNCH_EMBEDDINGS_CACHE": set(COMPUTING),
    "VOYAGE_API_KEY": set(COMPUTING),
}


def documented_settings() -> set[str]:
    rows = re.findall(r"(?m)^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \|", OPERATION)
    return {name for row in rows for name in re.findall(r"[A-Z_]+", row)}


def named_after(words: str) -> set[str]:
    """The settings in the sentence of the document that begins like this."""
    (sentence,) = re.findall(rf"(?s){words}(.+?)\.\s", OPERATION)
    return set(re.findall(r"`([A-Z_]+)`", sentence))


def test_every_documented_setting_reaches_who_reads_it_or_is_named_as_useless() -> None:
    fixed, useless = named_after("Compose itself sets"), named_after("These do nothing in `.env`:")
    settings = documented_settings()
    assert len(settings) > 60 and not fixed & useless and fixed | useless < settings
    for name in settings - fixed - useless:
        assert holders(name) >= (wanted := HOLDERS.get(name, set(OURS))), name
        assert name not in HOLDERS or holders(name) == wanted, name
    for name in fixed:  # By a value of its own, for the one who has it.
        values = {str(service["environment"].get(name, "")) for service in OURS.values()} - {""}
        assert len(values) == 1 and f"${{{name}" not in values.pop(), name
    assert not any(name in service["environment"] for name in useless for service in OURS.values())
    assert set(re.findall(r"\$\{(HUNCH_[A-Z_]+)", COMPOSE_TEXT)) - settings == OF_COMPOSE


def test_secrets_go_to_who_needs_them_alone() -> None:
    assert holders("POSTGRES_PASSWORD") == {*OURS, "db"}
    assert holders("SECRET_KEY") == holders("HUNCH_IDENTITY_KEY") == set(OURS)
    for name, services in HOLDERS.items():
        assert holders(name) == services, name


def test_profiles_add_to_what_runs_anyway() -> None:
    for name, (profile, neighbour) in {
        "web-scale": ("scale", "web"),
        "worker-scale": ("scale", "worker"),
        "worker-ml-gpu": ("gpu", "worker-ml"),
        "worker-collect-gpu": ("gpu", "worker-collect"),
    }.items():
        service = COMPOSE["services"][name]
        beside = COMPOSE["services"][neighbour]
        assert service["profiles"] == [profile] and "profiles" not in beside
        assert all(service[key] == beside[key] for key in ("image", "command", "environment", "volumes"))
    assert COMPOSE["services"]["web-scale"]["networks"] == {"default": {"aliases": ["web"]}}  # As the proxy names it.


def test_images_are_built_with_and_without_torch_and_extras() -> None:
    built = [service["build"]["args"] for service in OURS.values() if "build" in service]
    assert {interpolate(arguments["WITH_TORCH"], {}) for arguments in built} == {"0", "1"}
    for arguments in built:
        assert interpolate(arguments["WITH_EXTRAS"], {}) == "0"
        assert interpolate(arguments["WITH_EXTRAS"], {"HUNCH_EXTRAS": "1"}) == "1"


@pytest.mark.parametrize("path", ["Dockerfile", "deploy/systemd/install.sh"])
def test_what_runs_where_no_process_writes_bytecode_is_compiled_before(path: str) -> None:
    """Otherwise each process would compile all of Hunch when it starts."""
    text = (ROOT / path).read_text(encoding="utf-8")
    copied = re.findall(r"(?m)^COPY ([\w. ]+?) \S+$", text) or re.findall(r"(?m)^for part in (.+); do$", text)
    (compiled,) = re.findall(r"python -m compileall -q (.+)", text)
    ours = {name for name in " ".join(copied).split() if name.endswith(".py") or [*(ROOT / name).rglob("*.py")]}
    assert len(ours) == 5 and set(compiled.split()) == ours


def test_torch_is_installed_by_hash() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    (version,) = re.findall(r"(?m)^ARG TORCH_VERSION=(\S+)$", text)
    lock = (ROOT / "requirements" / "torch.lock").read_text(encoding="utf-8")
    assert re.search(rf"(?m)^torch=={re.escape(version)} \\\n    --hash=sha256:[0-9a-f]{{64}}", lock)
    installs = re.findall(r"pip install [^;&]*", text)
    assert len(installs) == 4 and all("--require-hashes" in line and "--no-deps" in line for line in installs)
