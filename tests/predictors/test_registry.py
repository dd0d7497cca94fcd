from __future__ import annotations

import subprocess
import sys

import pytest

from predictors import registry
from predictors.errors import PredictorError
from predictors.settings import BertSettings


@pytest.mark.torch
def test_every_predictor_has_settings_and_can_be_created():
    for name in registry.names():
        estimator = registry.create(name, {}, seed=3)
        defaults = registry.default_params(name)
        assert estimator.get_params() == {**defaults, "random_state": 3}


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
    assert light == ["previous_correct", "same_task"]


def test_the_light_modules_import_nothing_heavy():
    code = """
import sys
import predictors, predictors.artifacts, predictors.errors, predictors.evaluation, predictors.pairs
import predictors.registry, predictors.settings, predictors.training
for name in predictors.registry.names():
    predictors.registry.default_params(name), predictors.registry.is_heavy(name), predictors.training.members_of(name)
heavy = {"torch", "transformers", "sklearn", "scipy", "xgboost", "safetensors", "tokenizers", "django"}
print(sorted(heavy & set(sys.modules)))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
