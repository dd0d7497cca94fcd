"""Templates of prompts: places, keys, names, and what a change of the words changes."""

from __future__ import annotations

import pytest

from predictors import prompts
from predictors.errors import PredictorError

JUDGE = """use = "judge"
prompt = '''
{prompt} {{like this}}
1: {reply_1}
2: {reply_2}
'''
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (JUDGE.replace("{reply_2}", "{answer_2}"), r"line 5: \{answer_2\} is no place.*\{reply_2\}"),
        (JUDGE.replace("{reply_2}", ""), r"line 2: prompt lacks \{reply_2\}"),
        (JUDGE.replace("judge", "guess"), "line 1: use is 'guess'"),
        (JUDGE + 'opening = "x"\n', "line 7: opening is no key"),
        (JUDGE + "max_tokens = 0\n", "line 7: max_tokens must be"),
        (JUDGE + 'score = "first"\n', "line 7: score"),
        (JUDGE + 'system = " "\n', "line 7: system must be a text"),
        (JUDGE + '[[models]]\nmodel = "v*"\nformat = "USER:"\n', r"line 9: format must have the place \{prompt\}"),
        (JUDGE + '[[models]]\nname = "v*"\n', "line 8: name is no key"),
        (JUDGE + '[[models]]\nmodel="v"\nsystem="S"\nformat="{prompt}"\n', "system message would be lost"),
        ("use = ['judge']\nprompt = 'x'\n", "line 1: use is"),
        ("use = judge\n", "no TOML.*line 1"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(PredictorError, match=message):
        prompts.parsed(text)


def test_places_are_filled_once_and_double_braces_are_braces() -> None:
    filled = prompts.parsed(JUDGE).filled(prompt="{reply_1}", reply_1="{reply_2}", reply_2="{{x}}")
    assert filled == "{reply_1} {like this}\n1: {reply_2}\n2: {{x}}\n"


def test_the_first_entry_that_matches_says_how_a_model_is_asked() -> None:
    entries = """system = "all"
[[models]]
model = "vicuna*"
system = "V"
format = "{system} USER: {prompt} ASSISTANT:"
[[models]]
model = "bare"
system = ""
"""
    template = prompts.parsed(JUDGE + entries)
    assert template.as_text("vicuna-13b", "{system}?") == "V USER: {system}? ASSISTANT:"
    assert template.as_text("bare", "Q") == "Q" and template.as_text("other", "Q") == "all\n\nQ"
    assert template.chat("other", ["Q", "A", "R"])[0] == {"role": "system", "content": "all"}
    assert [message["role"] for message in template.chat("bare", ["Q", "A", "R"])] == ["user", "assistant", "user"]
    assert template.facts("bare") == [] and template.facts("vicuna-7b") != template.facts("other")


def test_an_edited_template_is_another_version_and_none_takes_the_name_of_ours(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(JUDGE)
    first = prompts.read_template(str(path), "judge")
    path.write_text(JUDGE + "# other\n")
    assert (first.name, first.version) != ("mine", prompts.read_template(str(path), "judge").version)
    # A word of the file's own does not hide what else was edited, such as which number is read.
    named = [
        prompts.parsed(f'version = "1"\n{edit}{JUDGE}', name="mine").version for edit in ("", "", 'score = "last"\n')
    ]
    assert named[0] == named[1] != named[2] and prompts.shipped("alone").version == "1"
    (tmp_path / "alone.toml").write_text(JUDGE)
    with pytest.raises(PredictorError, match="alone is the name of a template of ours"):
        prompts.read_template(str(tmp_path / "alone.toml"), "judge")
    with pytest.raises(PredictorError, match=r'mine\.toml is for use = "judge"; give one for "change"'):
        prompts.read_template(str(path), "change")


def test_a_path_is_none_of_the_settings_so_that_a_study_file_reads_no_file(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(JUDGE)
    with pytest.raises(PredictorError, match="is none of"):
        prompts.template_of(str(path), "judge")


@pytest.mark.parametrize("name", sorted(path.stem for path in prompts.FOLDER.glob("*.toml")))
def test_every_template_of_ours_is_read(name: str) -> None:
    assert name in prompts.names(prompts.shipped(name).use)
