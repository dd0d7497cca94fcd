"""What pyproject.toml, the locks and the notices say of the same packages, and the licences that go with them."""

import re
import runpy
import shutil
import tomllib
from itertools import combinations
from pathlib import Path

import pytest

from tools import lock

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def requirements(name: str) -> list[str]:
    """The lines of an input of the locks that name packages which Hunch imports."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8").split("# needs of torch")[0]
    return [line for line in text.splitlines() if line and not line.startswith(("#", "-r "))]


def test_the_package_needs_what_the_locks_are_made_from() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    assert PROJECT["project"]["dependencies"] == requirements("web.in")
    assert [name for name in extras["ml"] if not name.startswith("torch>=")] == requirements("ml.in")
    assert [*extras["dask"], *extras["s3"]] == requirements("extras.in")
    assert set(extras["redis"]) <= set(requirements("dev.in"))


def test_the_package_takes_the_torch_that_make_installs() -> None:
    (made,) = re.findall(r"(?m)^TORCH_VERSION := (\d+)\.(\d+)\.\d+$", (ROOT / "Makefile").read_text(encoding="utf-8"))
    major, minor = (int(part) for part in made)
    assert f"torch>={major}.{minor},<{major}.{minor + 1}" in PROJECT["project"]["optional-dependencies"]["ml"]


def test_what_builds_the_wheel_is_locked() -> None:
    (backend,) = PROJECT["build-system"]["requires"]
    assert backend in requirements("dev.in")
    assert re.search(rf"(?m)^{re.escape(backend)} ", (ROOT / "requirements/dev.lock").read_text(encoding="utf-8"))


def test_locks_that_are_installed_over_one_another_name_no_second_version() -> None:
    """Each package stands in one lock; those that extras and the ml worker both need, in the same words in two."""
    packages = {name: lock.blocks_of(name) for name in (*lock.RESTS_ON, "torch")}
    for (name, blocks), (other, others) in combinations(packages.items(), 2):
        shared = blocks.keys() & others.keys()
        assert not shared or {name, other} == {"ml", "extras"}
        # uv notes what needs a package under its hashes.
        assert {package: blocks[package] for package in shared} == {package: others[package] for package in shared}
    for name, below in lock.RESTS_ON.items():
        text = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
        assert re.findall(r"(?m)^-r (\w+)\.lock$", text) == list(below)
        assert re.findall(r"(?m)^[a-z0-9][\w.-]*==\S+(?! \\)$", text) == []


def test_a_resolved_package_comes_into_the_lock_of_what_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a resolver that changes one version and nothing else, that is all that changes in the files."""
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    monkeypatch.setattr(lock, "REQUIREMENTS", tmp_path / "requirements")
    needed: dict[str, dict[str, str]] = {}
    for name, below in lock.RESTS_ON.items():
        needed[name] = {
            **{key: block for other in below for key, block in needed[other].items()},
            **lock.blocks_of(name),
        }
    asked: list[tuple[str, ...]] = []

    def resolve(source: str, target: Path, *options: str) -> None:
        asked.append((Path(source).name, *options))
        blocks = needed.get(Path(source).stem) or {**needed["ml"], **lock.blocks_of("torch")}
        changed = [block.replace("httpx==", "httpx==9") for _name, block in sorted(blocks.items())]
        target.write_text("".join(changed), encoding="utf-8")

    monkeypatch.setattr(lock, "resolve", resolve)
    lock.main(["--package", "httpx"])
    assert [name for name, *options in asked if "--upgrade-package" in options and "httpx" in options] == [
        "dev.in",
        "torch.in",
    ]
    for path in sorted((ROOT / "requirements").iterdir()):
        before, after = path.read_text(encoding="utf-8"), (tmp_path / "requirements" / path.name).read_text("utf-8")
        assert after == (before.replace("httpx==", "httpx==9") if path.name == "web.lock" else before), path.name
    assert len(list((tmp_path / "requirements").iterdir())) == len(list((ROOT / "requirements").iterdir()))


def test_the_notices_name_what_is_locked() -> None:
    notices = runpy.run_path(str(ROOT / "tools/third_party_notices.py"))
    text = (ROOT / "THIRD_PARTY_NOTICES.md").read_text(encoding="utf-8")
    assert text.startswith(notices["HEAD"])
    rows = re.findall(r"(?m)^\| (\S+) \| (\S+) \| (.+) \| (.+) \|$", text.removeprefix(notices["HEAD"]))
    assert {name: (version, reader) for name, version, _licence, reader in rows} == notices["locked"](), (
        "run tools/third_party_notices.py"
    )


def test_code_and_bank_have_their_licences() -> None:
    assert "Apache License\n                           Version 2.0, January 2004" in (ROOT / "LICENSE").read_text()
    (bank,) = ROOT.glob("survey/**/starter.csv")
    notice = bank.with_name("starter.LICENSE").read_text(encoding="utf-8")
    assert "Creative Commons Attribution 4.0 International" in notice
    assert "https://creativecommons.org/licenses/by/4.0/" in notice
    assert PROJECT["project"]["license"] == "Apache-2.0 AND CC-BY-4.0"
    listed = PROJECT["project"]["license-files"]
    assert {"LICENSE", str(bank.with_name("starter.LICENSE").relative_to(ROOT))} <= set(listed)
    assert [name for name in listed if not (ROOT / name).is_file()] == []


def test_every_package_says_that_it_is_typed() -> None:
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    packages = [name for name in included if (ROOT / name / "__init__.py").is_file()]
    assert packages == ["bandit", "frontend", "predictors", "survey"]
    assert [name for name in packages if not (ROOT / name / "py.typed").is_file()] == []
