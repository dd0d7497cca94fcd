"""What the keys of a model mean, from the text below each field. Imports the standard library alone.

The text stands in the source once. The page of all keys (`tools/study_file_page.py`) and the forms of pages read it.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
SEE = re.compile(r"[;,:]?\s*(?:see|See) (?:`[^`]*`|below|\[[^\]]*\]\([^)]*\))(?=[.;,)]|$)")


@lru_cache
def meanings_of(model: Any) -> Mapping[str, str]:
    """By key, the text below it, on one line, as Markdown; else the field's description."""
    texts = {name: field.description for name, field in model.model_fields.items() if field.description}
    for part in reversed(model.__mro__):
        if "__annotations__" in vars(part) and part.__module__.partition(".")[0] != "pydantic":
            (defined,) = ast.parse(textwrap.dedent(inspect.getsource(part))).body
            for field, below in pairwise(defined.body if isinstance(defined, ast.ClassDef) else ()):
                match field, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                        texts[name] = " ".join(words.split())
    return texts


def in_plain_words(meaning: str) -> str:
    """The text for people who do not see the file: without links, marks of code, and where else to look."""
    return (
        LINK.sub(r"\1", SEE.sub("", meaning))
        .replace('`"', "“")
        .replace('"`', "”")
        .replace("`", "")
        .replace("**", "")
        .strip()
    )
