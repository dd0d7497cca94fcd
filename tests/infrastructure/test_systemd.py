"""The units for a server without containers: what they run is what compose runs, and systemd understands them."""

import configparser
import os
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import unavailable

from .test_compose import COMPOSE, HOLDERS, SECRETS, interpolate

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
UNITS = ROOT / "deploy" / "systemd"
SERVICES = {name: name for name in ("web", "worker", "worker-ml", "worker-collect", "beat", "migrate")}
# Containers have a health check each and addresses of their own.
OF_CONTAINERS = {"HUNCH_HEARTBEAT", "HUNCH_WATCH_WEB", "REDIS_URL"}


def parsed(path: Path) -> Any:
    """A unit; where a key comes twice (Environment), both values, one a line."""

    class Lines(dict[str, Any]):
        def __setitem__(self, key: str, value: Any) -> None:
            if isinstance(value, list) and key in self:
                value = [*self[key], *value]
            super().__setitem__(key, value)

    unit = configparser.ConfigParser(strict=False, interpolation=None, dict_type=Lines)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(path)
    return unit


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("root")
    run = subprocess.run(
        ["sh", str(UNITS / "install.sh")],
        env={"PATH": os.environ["PATH"], "DESTDIR": str(root), "PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return root


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_runs_what_its_container_runs(name: str) -> None:
    unit = parsed(UNITS / f"hunch-{name}.service")
    program, *arguments = shlex.split(unit["Service"]["ExecStart"].replace("%%", "%"))
    of_container = COMPOSE["services"][SERVICES[name]]
    assert program == "/opt/hunch/.venv/bin/python" and ["python", *arguments] == of_container["command"]
    environment = dict(pair.split("=", 1) for pair in unit["Service"].get("Environment", "").split())
    fixed = {
        key: interpolate(value, SECRETS)
        for key, value in of_container["environment"].items()
        if "${" not in str(value) and key not in OF_CONTAINERS
    }
    common = parsed(UNITS / "hunch-.service.d" / "common.conf")["Service"]["Environment"].split()
    assert fixed.items() <= (environment | dict(pair.split("=", 1) for pair in common)).items()


def test_every_service_is_hardened_and_none_is_root() -> None:
    common = parsed(UNITS / "hunch-.service.d" / "common.conf")["Service"]
    assert common["User"] == "hunch"
    assert common["EnvironmentFile"].split() == ["/etc/hunch/hunch.env", "-/etc/hunch/%p.env"]
    for name in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "RestrictNamespaces", "LockPersonality"):
        assert common[name] == "yes", name
    assert common["ProtectSystem"] == "strict" and common["CapabilityBoundingSet"] == ""
    for path in UNITS.glob("hunch-*.service"):
        assert not {"User", "ProtectSystem", "NoNewPrivileges"} & set(parsed(path)["Service"]), path.name


def test_the_script_installs_everything_and_keeps_keys_for_root_alone(installed: Path) -> None:
    assert {path.name for path in (installed / "etc/systemd/system").iterdir()} == {
        *(path.name for path in UNITS.iterdir() if path.name != "install.sh"),
    }
    settings = installed / "etc/hunch/hunch.env"
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    environment = dict(line.split("=", 1) for line in settings.read_text().splitlines() if not line.startswith("#"))
    run = subprocess.run(
        [sys.executable, "-c", "from survey import settings; print(settings.BASE_DIR)"],
        cwd=installed / "opt/hunch",
        env={
            **environment,
            "HUNCH_ENV": "production",
            "HUNCH_HOSTS": "study.example.org",
            "HUNCH_VAR": str(installed / "var"),
        },
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stdout.strip()) == (0, str(installed / "opt/hunch")), run.stderr


def test_a_service_gets_the_secrets_that_its_container_gets(installed: Path) -> None:
    settings = installed / "etc/hunch"
    files = {path.stem.removeprefix("hunch-"): path for path in settings.glob("hunch-*.env")}
    assert set(files) == {"web", "worker", "worker-ml", "worker-collect", "beat"}
    for service, path in files.items():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        named = {line.partition("=")[0] for line in path.read_text().splitlines() if not line.startswith("#")}
        assert named == {name for name, holders in HOLDERS.items() if service in holders}, service
    shared = (settings / "hunch.env").read_text()
    assert not any(f"{name}=" in shared for name in HOLDERS)


def test_a_second_run_keeps_settings_and_keys(installed: Path) -> None:
    before = (installed / "etc/hunch/hunch.env").read_text()
    of_web = installed / "etc/hunch/hunch-web.env"
    of_web.write_text(of_web.read_text().replace("HUNCH_METRICS_TOKEN=", f"HUNCH_METRICS_TOKEN={'m' * 32}"))
    stale = installed / "opt/hunch/survey/stale.py"
    stale.touch()
    subprocess.run(
        ["sh", str(UNITS / "install.sh")],
        env={"PATH": os.environ["PATH"], "DESTDIR": str(installed), "PYTHON": sys.executable},
        check=True,
        capture_output=True,
    )
    assert (installed / "etc/hunch/hunch.env").read_text() == before and not stale.exists()
    assert "m" * 32 in of_web.read_text()


def test_systemd_understands_every_unit(installed: Path, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        unavailable("whether systemd understands the units: install systemd")
    units = tmp_path / "units"
    shutil.copytree(installed / "etc/systemd/system", units)
    for path in units.rglob("*.*"):
        if path.is_file():  # The program must be there: ours is not installed in /opt.
            path.write_text(path.read_text().replace("/opt/hunch/.venv/bin/python", sys.executable))
    names = [str(path) for path in units.iterdir() if path.is_file()]
    run = subprocess.run(
        [analyze, "verify", "--man=no", *names],
        env={"PATH": os.environ["PATH"], "SYSTEMD_UNIT_PATH": f"{units}:"},
        capture_output=True,
        text=True,
    )
    complaints = [line for line in run.stderr.splitlines() if "hunch" in line]
    assert (run.returncode, complaints) == (0, []), run.stderr
