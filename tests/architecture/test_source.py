"""What no file of the project may hold, and what files must agree on."""

import ast
import re
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BESIDE = ("benchmarks", "tools", "clients", "studies", "deploy", "docs")
PACKAGES = ("survey", "frontend", "bandit", "predictors")


def python_files() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def files_with(pattern: str, paths: list[Path]) -> list[str]:
    expression = re.compile(pattern)
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if expression.search(line)
    ]


def test_no_file_names_a_folder_of_one_machine() -> None:
    assert files_with(r"[\"'\s(](/home|/root|/Users)/\w", python_files()) == []


def test_nothing_is_left_for_later() -> None:
    assert files_with(r"\b(TODO|FIXME|XXX)\b", python_files()) == []


def test_no_file_is_read_or_written_as_pickle_and_no_remote_code_is_trusted() -> None:
    pattern = (
        r"^\s*(import|from)\s+(pickle|joblib|dill|cloudpickle|shelve|marshal)\b|trust_remote_code=True"
        r"|torch\.(load|save)\(|allow_pickle=True|weights_only=False|read_pickle|pytorch_model"
    )
    assert files_with(pattern, read_by_our_code()) == []


def read_by_our_code() -> list[Path]:
    """Python files that load something: the packages, and what is run next to them."""
    return [*python_files(), *(path for folder in BESIDE for path in sorted((ROOT / folder).rglob("*.py")))]


def test_every_reader_of_models_and_arrays_refuses_pickle() -> None:
    """Weights are safetensors alone, and arrays are loaded without pickle: each call says so by itself."""
    wanted = {"from_pretrained": ("use_safetensors", True), "load": ("allow_pickle", False)}
    careless = []
    for path in read_by_our_code():
        text = path.read_text(encoding="utf-8")
        if not any(name in text for name in wanted):
            continue
        for node in ast.walk(ast.parse(text)):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if (name := node.func.attr) not in wanted:
                continue
            owner = ast.unparse(node.func.value)
            is_model = name == "from_pretrained" and not owner.endswith(("Tokenizer", "Config"))
            if not is_model and not (name == "load" and owner in ("np", "numpy")):
                continue
            keyword, value = wanted[name]
            said = {keyword.arg: keyword.value for keyword in node.keywords}.get(keyword)
            if not (isinstance(said, ast.Constant) and said.value is value):
                careless.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)[:80]}")
    assert careless == []


def test_every_module_says_what_it_is() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in python_files()
        if "migrations" not in path.parts
        and path.read_text(encoding="utf-8").strip()
        and not path.read_text(encoding="utf-8").startswith('"""')
    ]
    assert silent == []


def test_every_setting_of_ours_has_a_reader() -> None:
    settings = (ROOT / "survey/settings.py").read_text(encoding="utf-8")
    names = set(re.findall(r"^\s*(HUNCH_[A-Z_]+|IN_PRODUCTION) =", settings, flags=re.MULTILINE))
    assert names
    elsewhere = "\n".join(
        path.read_text(encoding="utf-8") for path in [*python_files(), *sorted((ROOT / "tests").rglob("*.py"))]
    )
    # A name counts as read when another module asks the settings for it, or a later line of the settings uses it.
    unread = [
        name
        for name in sorted(names)
        if f"settings.{name}" not in elsewhere and len(re.findall(rf"\b{name}\b", settings)) < 3
    ]
    assert unread == []


@pytest.mark.django_db
def test_the_migrations_are_complete() -> None:
    ours = [app.label for app in apps.get_app_configs() if Path(app.path).is_relative_to(ROOT / "survey")]
    assert len(ours) > 5
    call_command("makemigrations", *ours, check=True, dry_run=True)  # Where one is missing it exits.


def test_makefile_and_dockerfile_agree_on_torch() -> None:
    (made,) = re.findall(r"^TORCH_VERSION := (\S+)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    (built,) = re.findall(r"^ARG TORCH_VERSION=(\S+)$", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    assert made == built
