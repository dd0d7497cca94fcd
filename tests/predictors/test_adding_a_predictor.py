"""Follows docs/predictors.md: what it tells a reader to write is written here, and works."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from predictors import artifacts, registry, training
from predictors.errors import PredictorError
from predictors.features import Features

PAGE = Path(__file__).parents[2] / "docs" / "predictors.md"
ROWS = [Features({"text": "a river"}, {"length": 2.0}), Features({"text": "a city"}, {"length": 1.0})] * 10


def blocks() -> list[str]:
    section = PAGE.read_text(encoding="utf-8").partition("## Adding a predictor\n")[2]
    return re.findall(r"(?ms)^```python\n(.*?)^```", section)


def test_the_predictor_of_the_page_trains_and_scores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    estimator, declaration = blocks()
    module = ModuleType("predictors.models.share")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(estimator, module.__dict__)  # noqa: S102 - our own page
    known = dict(registry.DECLARATIONS)
    exec(declaration, {"DECLARATIONS": known, "Declaration": registry.Declaration, "settings": module})  # noqa: S102
    monkeypatch.setattr(registry, "DECLARATIONS", known)
    assert registry.default_params("share") == {"prior": 1.0}
    labels = [0.0] * 15 + [1.0] * 5
    training.train_member("share", {"prior": 3.0}, 0, 0, ROWS, labels, None, tmp_path / "model")
    assert artifacts.verify(tmp_path / "model")["kind"] == "share"
    assert training.score([tmp_path / "model"], ROWS) == pytest.approx(8 / 26)
    with pytest.raises(PredictorError, match="prior: 0 is not a number above 0"):
        registry.create("share", {"prior": 0}).fit(ROWS, labels)


def test_the_places_that_the_page_names_are_there() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Adding a predictor\n")[2]
    for place in re.findall(r"`(predictors/[a-z/]+\.py|tests/predictors/)`", section):
        assert (PAGE.parents[1] / place).exists(), place
