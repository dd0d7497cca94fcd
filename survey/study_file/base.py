"""What all parts of the study file share: names, texts, and tables that refuse unknown keys. Imports pydantic alone."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
# Fields of the pages' own in every form; a check or question of that name could not be told from them.
RESERVED = ("step", "screen", "csrfmiddlewaretoken", "consent")


def _not_reserved(name: str) -> str:
    if name in RESERVED or name.startswith("client_"):
        raise ValueError("this name is used by the pages themselves: choose another")
    return name


FieldName = Annotated[Name, AfterValidator(_not_reserved)]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=80)]
SEED_LIMIT = 2**53  # JSON keeps integers exactly up to here, and so do browsers.


class Strict(BaseModel):
    """Unknown keys are refused: a misspelt key would otherwise change a study in silence."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)
