"""Where Hunch's files are: in a checkout or an installed package. Imports the standard library, reads no settings."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# The checkout, or the folder that holds installed packages. Only a checkout (and our image, a copy) has manage.py.
BASE_DIR = Path(__file__).resolve().parents[2]
IS_INSTALLED = not (BASE_DIR / "manage.py").is_file()
# The study files that come with Hunch: a folder of the checkout, and of the package `survey` in a wheel.
STUDIES_DIR = BASE_DIR / "survey" / "studies" if IS_INSTALLED else BASE_DIR / "studies"
# The documents, their menu, and the folder to which those outside of docs/ are named.
DOCUMENTS_DIR = BASE_DIR / "survey" / "docs" if IS_INSTALLED else BASE_DIR / "docs"
DOCUMENTS_MENU = DOCUMENTS_DIR / "mkdocs.yml" if IS_INSTALLED else BASE_DIR / "mkdocs.yml"
OUTSIDE_DOCUMENTS = DOCUMENTS_DIR if IS_INSTALLED else BASE_DIR


def installed_version() -> str:
    """The version of the installed package; a checkout that is not installed has none."""
    try:
        return version("hunch")
    except PackageNotFoundError:
        return "from a checkout that is not installed"
