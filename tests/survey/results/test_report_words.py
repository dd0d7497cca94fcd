"""What reports say to people: words, and no names of the code. As the terminal has it, which says what pages say."""

import re

import pytest

from survey.services.results.estimates.estimate_tables import _slots_in_words
from tests.golden import store

# What researchers write in a study file, or name a predictor by, stands as they write it.
WRITTEN = {"same_task", "odds_ratio", "control_kinds", "responses_per_item", "plan_budget", "texts_from", "trade_off"}
WRITTEN |= {
    "people_study",
    "both_outcomes",
    "held_out_scores",
    "test_set",
    "first_check",
    "second_check",
    "source_0",
    "source_1",
}
TEXTS = {name: text.decode() for name, text in store.read_results("reports").items() if name.endswith(".txt")}


@pytest.mark.parametrize("report", sorted(TEXTS))
def test_a_report_names_designs_controls_and_figures_in_words(report: str) -> None:
    text = re.sub(r"^wrote .*$|\b\w+\.(csv|json|svg|toml)\b", "", TEXTS[report], flags=re.MULTILINE)
    assert {*re.findall(r"\b[a-z]+(?:_[a-z0-9]+)+\b", text)} <= WRITTEN, "a Column has the style `words` for such names"
    assert "holdout holdout" not in text


@pytest.mark.parametrize(
    ("role", "stratum", "words"),
    [("sampled", "all", "stage 2"), ("sampled", "top", "stage 2, top"), ("holdout", "holdout", "stage 2, holdout")],
)
def test_slots_are_named_once_by_role_or_stratum(role: str, stratum: str, words: str) -> None:
    assert _slots_in_words(2, role, stratum) == words
