"""What the site that mkdocs builds of the documents has beside docs/: pages made from the code, and pages from outside.

A hook of mkdocs. `survey/documents` shows the same pages on a running server.
"""

import os
import tempfile
from typing import Any

from survey.documents import pages, reference
from survey.storage.paths import OUTSIDE_DOCUMENTS


def on_files(files: Any, config: Any) -> Any:
    """Called by mkdocs: add the pages."""
    from mkdocs.structure.files import File

    _set_up()
    for name in reference.TITLES:
        files.append(File.generated(config, f"{name}.md", content=reference.page(name)))
    for page, path in pages.OUTSIDE.items():
        text = (OUTSIDE_DOCUMENTS / path).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=pages.as_in_docs(text)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Called by mkdocs: links to the pages outside of docs/ lead to where the site has them."""
    return pages.as_in_docs(markdown)


def _set_up() -> None:
    """Load Django, with run-time files in a folder of its own where none is set."""
    import django
    from django.apps import apps

    if not apps.ready:
        os.environ.setdefault("HUNCH_VAR", tempfile.mkdtemp(prefix="hunch-docs-"))
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "survey.settings")
        django.setup()
