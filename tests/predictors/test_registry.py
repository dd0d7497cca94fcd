from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from dataclasses import dataclass
from pkgutil import resolve_name

import numpy as np
import pytest

from predictors import artifacts, registry, training
from predictors.errors import PredictorError
from predictors.features import Features
from predictors.models.base import SettingsEstimator, both_classes
from predictors.settings import BertSettings

FEATURES = [Features({"text": "a river"}, {"length": 2.0}), Features({"text": "a city"}, {"length": 1.0})] * 10


@pytest.mark.torch
def test_every_predictor_has_settings_and_can_be_created_and_cloned():
    from sklearn.base import clone

    for name in registry.names():
        estimator = registry.create(name, {}, seed=3)
        params = {**registry.default_params(name), **registry.declaration(name).fixed, "random_state": 3}
        assert estimator.get_params() == clone(estimator).get_params() == params
        assert registry.kind_of(estimator) == name


def test_parameters_and_their_defaults_are_those_of_the_settings_class():
    from sklearn.base import clone

    @dataclass(frozen=True)
    class Depth:
        depth: int = 4
        trees: int = 10

    class Half(SettingsEstimator):
        def predict_proba(self, rows, progress=None):
            return np.full((len(rows), 2), 0.5)

    class Mine(Half, settings=Depth):
        pass

    class OneTree(Half, settings=Depth, fixed={"trees": 1}):
        pass

    assert Mine().get_params() == {"depth": 4, "trees": 10, "random_state": 0}
    assert clone(Mine(depth=7, random_state=2)).settings() == Depth(depth=7)
    assert OneTree(depth=2).get_params() == {"depth": 2, "random_state": 0}
    assert OneTree(depth=2).settings() == OneTree.from_params({"depth": 2, "trees": 1}).settings() == Depth(2, 1)
    with pytest.raises(TypeError, match="'leaves'"):
        Mine(leaves=3)
    with pytest.raises(TypeError, match="'trees'"):
        OneTree(trees=3)


@pytest.mark.torch
def test_every_saved_kind_is_a_declared_class_of_today():
    kinds = registry.kinds()
    stored = {"previous_correct", "same_task", "bert", "bert_member", "embedding_xgboost"}
    stored |= {"causal_lm", "causal_lm_member", "llm_prompt", "hybrid"}
    assert set(kinds) == stored | {"logistic"}
    for path in kinds.values():
        assert hasattr(resolve_name(path), "load_files")


@dataclass(frozen=True)
class ShareSettings:
    prior: float = 1.0


class Share(SettingsEstimator, settings=ShareSettings):
    """Predicts the training share of label 1 for every row."""

    def fit(self, rows, labels, sample_weight=None, progress=None):
        data = self.training_data(rows, labels, sample_weight)
        self.share_ = float((data.labels.sum() + self.prior) / (len(data.rows) + 2 * self.prior))
        self.loss_, self.n_iter_, self.n_examples_ = 0.5, 1, len(data.rows)
        return self

    def predict_proba(self, rows, progress=None):
        return both_classes(np.full(len(self.checked_rows(rows)), self.share_))

    def save_files(self, folder):
        (folder / "share.json").write_text(json.dumps([self.get_params(), self.share_]))

    @classmethod
    def load_files(cls, folder):
        params, share = json.loads((folder / "share.json").read_text())
        loaded = cls(**params)
        loaded.share_ = share
        return loaded


def test_one_declaration_is_all_that_a_new_predictor_needs(monkeypatch, tmp_path):
    declared = registry.Declaration(f"{__name__}.Share", ShareSettings, "features", heavy=False)
    monkeypatch.setitem(registry.DECLARATIONS, "share", declared)
    assert "share" in registry.names() and registry.default_params("share") == {"prior": 1.0}
    assert registry.reads("share") == "features" and not registry.is_heavy("share")
    assert training.members_of("share") == 1
    training.train_member("share", {"prior": 3.0}, 0, 0, FEATURES, [0.0] * 15 + [1.0] * 5, None, tmp_path / "model")
    assert artifacts.verify(tmp_path / "model")["kind"] == "share"
    assert training.score([tmp_path / "model"], FEATURES) == pytest.approx(8 / 26)
    with pytest.raises(PredictorError, match="share does not know 'posterior'; it has prior"):
        registry.create("share", {"posterior": 1})


def test_it_is_known_what_a_predictor_reads_before_it_is_created():
    assert {name for name in registry.names() if registry.reads(name) == "features"} == {
        "bert", "embedding_xgboost", "logistic", "previous_correct", "same_task"
    }  # fmt: skip
    with pytest.raises(PredictorError, match="'bart' is not known"):
        registry.reads("bart")


@pytest.mark.torch
@pytest.mark.parametrize("name", ["hybrid", "causal_lm", "llm_prompt"])
def test_a_predictor_of_pairs_refuses_features_by_name(name, tmp_path):
    message = f"predictor: {name} reads pairs of the belief update alone.*choose one of bert, embedding_xgboost, logi"
    with pytest.raises(PredictorError, match=message):
        registry.create(name).fit(FEATURES, [0.0, 1.0] * 10)
    with pytest.raises(PredictorError, match=message):
        training.train_member(name, {}, 0, 0, FEATURES, [0.0, 1.0] * 10, None, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_predictor_whose_library_is_not_installed_is_refused_in_words(monkeypatch):
    declared = dataclasses.replace(registry.DECLARATIONS["same_task"], estimator="library_not_there.Class")
    monkeypatch.setitem(registry.DECLARATIONS, "same_task", declared)
    with pytest.raises(
        PredictorError, match=r"same_task needs library_not_there, which is not installed; .*make install"
    ):
        registry.create("same_task")


def test_an_unknown_predictor_is_refused_with_the_known_ones():
    with pytest.raises(PredictorError, match=r"'bart' is not known; choose one of bert, causal_lm, .*, same_task"):
        registry.create("bart")


def test_an_unknown_setting_is_refused_with_the_known_ones():
    with pytest.raises(PredictorError, match="bert does not know 'epoch'; it has checkpoint, members, epochs"):
        registry.create("bert", {"epoch": 3})
    with pytest.raises(PredictorError, match="it has no settings"):
        registry.create("same_task", {"epochs": 3})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("members", 0),
        ("epochs", 1.5),
        ("batch_size", True),
        ("max_length", 3),
        ("learning_rate", 0),
        ("learning_rate", float("nan")),
        ("weight_decay", -1),
        ("dropout", 1.0),
        ("head", "tail"),
        ("head_learning_rate", -1),
        ("bfloat16", "yes"),
        ("checkpoint", ""),
        ("min_steps", -1),
        ("frozen_layers", -1),
        ("token_budget", 0),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(PredictorError, match=f"^{field}: "):
        BertSettings(**{field: value})


def test_the_defaults_are_the_papers_recipe():
    defaults = registry.default_params("bert")
    recipe = {"epochs": 2, "batch_size": 32, "learning_rate": 5e-5, "max_grad_norm": 1.0, "members": 5, "head": "paper"}
    assert recipe.items() <= defaults.items()


def test_all_but_the_regressions_are_heavy():
    light = [name for name in registry.names() if not registry.is_heavy(name)]
    assert light == ["logistic", "previous_correct", "same_task"]


@pytest.mark.slow
def test_the_light_modules_import_nothing_heavy():
    code = """
import sys
import predictors, predictors.artifacts, predictors.errors, predictors.evaluation, predictors.pairs, predictors.features
import predictors.registry, predictors.settings, predictors.training
for name in predictors.registry.names():
    predictors.registry.default_params(name), predictors.registry.is_heavy(name), predictors.registry.reads(name)
    predictors.training.members_of(name)
heavy = {"torch", "transformers", "sklearn", "scipy", "xgboost", "safetensors", "tokenizers", "django"}
print(sorted(heavy & set(sys.modules)))
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "params", "rows", "message"),
    [
        ("logistic", {"numbers": ["lenght"]}, FEATURES, "^logistic reads the number 'lenght', .*they have length"),
        ("same_task", {}, FEATURES, "^same_task reads the number 'previous_correct', which these rows lack"),
        (
            "logistic",
            {"numbers": ["length"]},
            [Features({"text": "a river"})],
            "reads the number 'length', .*have none",
        ),
        ("hybrid", {}, FEATURES, "hybrid reads pairs of the belief update alone"),
    ],
)
def test_rows_without_the_numbers_that_a_predictor_reads_are_refused(name, params, rows, message):
    with pytest.raises(PredictorError, match=message):
        registry.require_numbers(name, params, rows)


def test_rows_with_the_numbers_that_a_predictor_reads_are_accepted():
    registry.require_numbers("logistic", {"numbers": ["length"]}, FEATURES)
    registry.require_numbers("logistic", {}, FEATURES)
    registry.require_numbers("bert", {}, FEATURES)
    registry.require_numbers("same_task", {}, [("a?", "b?", "rivers", "rivers", 1)])


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("bert", {"epochs": 0}, "epochs: must be 1 or more, not 0"),
        ("bert", {"epochs": "3"}, "epochs: must be a whole number, not '3'"),
        ("bert", {"learning_rate": 0.0}, "learning_rate: must be above 0, not 0.0"),
        ("bert", {"learning_rate": float("nan")}, "learning_rate: must be a finite number, not nan"),
        ("bert", {"dropout": 1.0}, "dropout: must be below 1, not 1.0"),
        ("bert", {"head": "round"}, "head: must be one of 'paper' or 'segments', not 'round'"),
        ("bert", {"checkpoint": ""}, "checkpoint: must be a text that is not empty, not ''"),
        ("embedding_xgboost", {"subsample": 2.0}, "subsample: must be 1 or less, not 2.0"),
        ("logistic", {"numbers": "a"}, "numbers: must be a list, not 'a'"),
    ],
)
def test_a_setting_that_cannot_be_used_says_what_it_must_be(name, params, message):
    with pytest.raises(PredictorError, match=f"^{message}$"):
        registry.settings_of(name, params)
