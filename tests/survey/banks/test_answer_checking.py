"""A table of replies as models write them, each with what it states; and what is ambiguous, with why."""

import csv
from pathlib import Path

import pytest
from django.conf import settings

from survey.services.banks.answer_checking import RULES_VERSION, check_answer, kind_of, options_of
from survey.services.banks.answer_rules import RULES

CASES = [
    pytest.param(reply, key, question[0] if question else "", verdict, id=f"{rule.name}-{verdict}-{place}")
    for rule in RULES
    for verdict in ("right", "wrong", "unreadable")
    for place, (key, reply, *question) in enumerate(getattr(rule, verdict))
]

QUESTION = "<b>What is the capital of France?<br></b>(A) Lyon<br>(B) Paris<br>(C) New York<br>(D) New York City"

# key, reply, what it states ("" where it is ambiguous or states nothing)
LETTERS = [
    ("B", "B", "B"),
    ("B", "b", "B"),
    ("B", " B ", "B"),
    ("B", "B.", "B"),
    ("B", "B)", "B"),
    ("B", "(B)", "B"),
    ("B", "(b)", "B"),
    ("B", "[B]", "B"),
    ("B", "B:", "B"),
    ("(B)", "B", "B"),
    ("B", "**B**", "B"),
    ("B", "**(B)**", "B"),
    ("B", "`B`", "B"),
    ("B", '"B"', "B"),
    ("B", "_B_", "B"),
    ("B", "### B", "B"),
    ("B", "$B$", "B"),
    ("B", "\\boxed{B}", "B"),
    ("B", "$\\boxed{B}$", "B"),
    ("B", "\\boxed{\\text{B}}", "B"),
    ("B", "\\boxed{(B)}", "B"),
    ("B", "\\[\\boxed{\\textbf{(B)}}\\]", "B"),
    ("B", "\\boxed{B. Paris}", "B"),
    ("B", "(A) is wrong, so \\boxed{B}", "B"),
    ("B", "\\boxed{A} or \\boxed{B}", ""),
    ("B", "B. Paris", "B"),
    ("B", "B) Paris", "B"),
    ("B", "(B) Paris", "B"),
    ("B", "B: Paris", "B"),
    ("B", "B, because Paris is the capital", "B"),
    ("B", "B because Paris is the capital", "B"),
    ("B", "B - Paris", "B"),
    ("B", "b) Paris", "B"),
    ("B", "B\n\nParis is the capital.", "B"),
    ("B", "The answer is B", "B"),
    ("B", "The answer is B.", "B"),
    ("B", "The answer is **b**", "B"),
    ("B", "The answer is (B).", "B"),
    ("B", "The answer is (b) Paris", "B"),
    ("B", "the correct answer is B: Paris", "B"),
    ("B", "The correct option is B", "B"),
    ("B", "The best choice is (B)", "B"),
    ("B", "Answer: B", "B"),
    ("B", "Answer: (B)", "B"),
    ("B", "answer:B", "B"),
    ("B", "ANSWER: B", "B"),
    ("B", "Final answer: B", "B"),
    ("B", "**Final Answer:** (B)", "B"),
    ("B", "The answer is A. No wait. Final answer: B", "B"),
    ("B", "Answer = B", "B"),
    ("B", "Option B", "B"),
    ("B", "option b.", "B"),
    ("B", "The answer is option B", "B"),
    ("B", "The answer would be B.", "B"),
    ("B", "The answer must be B.", "B"),
    ("B", "So the answer is therefore B.", "B"),
    ("B", "I believe (B) fits.", "B"),
    ("B", "I would pick B", "B"),
    ("B", "I think it's B.", "B"),
    ("B", "It is B", "B"),
    ("B", "(B) is the right one", "B"),
    ("B", "B is correct.", "B"),
    ("B", "Clearly, B is the correct one, not the others", "B"),
    ("B", "A dog would say B", "B"),
    ("A", "A", "A"),
    ("A", "A.", "A"),
    ("A", "The answer is A", "A"),
    ("A", "The answer is A.", "A"),
    ("A", "A) Lyon", "A"),
    ("A", "It is A.", "A"),
    ("B", "A city in France", ""),
    ("B", "The answer is a bit hard to give", ""),
    ("I", "I", "I"),
    ("I", "(I)", "I"),
    ("I", "The answer is I.", "I"),
    ("B", "I do not know", ""),
    ("B", "I think so", ""),
    ("R", "R", "R"),
    ("R", "(R)", "R"),
    ("Q", "The answer is (Q).", "Q"),
    ("M", "M.", "M"),
    ("B", "A", "A"),
    ("B", "The answer is C.", "C"),
    ("B", "(A) or (B)", ""),
    ("B", "A or B", ""),
    ("B", "A and B", ""),
    ("B", "Both (A) and (B)", ""),
    ("B", "(A) Lyon (B) Paris", ""),
    ("B", "(A) Lyon\n(B) Paris\n(C) New York", ""),
    ("B", "The answer is A. The answer is B.", ""),
    ("B", "not (B)", ""),
    ("B", "It is not B", ""),
    ("B", "(B) is incorrect", ""),
    ("B", "Hmm", ""),
    ("B", "", ""),
    ("B", "   \n ", ""),
    ("B", "S", ""),
    ("B", "Z", ""),
    ("B", "42", ""),
    ("B", "<answer>B</answer>", "B"),
    ("B", "B<|im_end|>", "B"),
    ("B", "The answer is 'B'", "B"),
    ("B", "Answer: B, C", ""),
    ("B", "The answer is B or C", ""),
    ("B", "The answer is B) Paris, not A) Lyon", "B"),
]
BY_WORDS = [
    ("B", "Paris", "B"),
    ("B", "paris.", "B"),
    ("B", "The answer is Paris.", "B"),
    ("B", "It is Paris", "B"),
    ("B", "The capital of France is Paris.", "B"),
    ("B", "Lyon or Paris", ""),
    ("B", "It is not Paris", ""),
    ("C", "New York", "C"),
    ("D", "New York City", "D"),
    ("D", "It is New York City.", "D"),
    ("B", "E", ""),
    ("B", "The answer is F.", ""),
    ("B", "Berlin", ""),
]
NUMBERS = [
    ("42", "42", "42"),
    ("42", "42.", "42"),
    ("42", "42.0", "42"),
    ("42", " 42 ", "42"),
    ("42", "**42**", "42"),
    ("42", "$42", "42"),
    ("42", "$42$", "42"),
    ("42", "42 dollars", "42"),
    ("42", "42%", "42"),
    ("42", "The answer is 42", "42"),
    ("42", "The answer is 42.", "42"),
    ("42", "Answer: 42", "42"),
    ("42", "The result is 42", "42"),
    ("42", "\\boxed{42}", "42"),
    ("42", "6 x 7 gives \\boxed{42}.", "42"),
    ("42", "6 * 7 = 42", "42"),
    ("42", "6 * 7 = 42.", "42"),
    ("42", "= 42", "42"),
    ("42", "There are 42 of them", "42"),
    ("42", "forty-two", "42"),
    ("42", "Forty two.", "42"),
    ("7", "seven", "7"),
    ("7", "There are seven", "7"),
    ("13", "thirteen", "13"),
    ("-3", "-3", "-3"),
    ("-3", "\u22123", "-3"),
    ("-3", "- 3", "-3"),
    ("-3", "minus three", "-3"),
    ("-3", "The answer is -3.", "-3"),
    ("-3", "3", "3"),
    ("-3", "negative 3", "-3"),
    ("-3", "(-3)", "-3"),
    ("-3", "5 - 8 = -3", "-3"),
    ("1234", "1,234", "1234"),
    ("1,234", "1234", "1234"),
    ("1234567", "1,234,567", "1234567"),
    ("-11520", "-11,520", "-11520"),
    ("0.5", "1/2", "1/2"),
    ("0.5", ".5", "1/2"),
    ("0.5", "\\boxed{\\frac{1}{2}}", "1/2"),
    ("3.14", "3.14", "157/50"),
    ("42", "41", "41"),
    ("42", "41 or 42", ""),
    ("42", "between 40 and 45", ""),
    ("12", "10-12", ""),
    ("42", "First 6, then 7", ""),
    ("42", "The answer is 6. The answer is 42.", ""),
    ("42", "The answer is 6. Final answer: 42", "42"),
    ("42", "many", ""),
    ("42", "B", ""),
]
WORDS = [
    ("Yes", "Yes", "yes"),
    ("Yes", "yes", "yes"),
    ("yes", "YES.", "yes"),
    ("Yes", "Yes, because he did it", "yes"),
    ("Yes", "- Yes", "yes"),
    ("Yes", "**Yes**", "yes"),
    ("Yes", "Answer: Yes", "yes"),
    ("Yes", "The answer is yes.", "yes"),
    ("Yes", "\\boxed{Yes}", "yes"),
    ("Yes", "Yes. There is no doubt.", "yes"),
    ("No", "No", "no"),
    ("No", "no.", "no"),
    ("No", "No, he did not", "no"),
    ("No", "No\nBecause of the wire", "no"),
    ("No", "So the answer is no.", "no"),
    ("No", "Options: yes or no. The answer is no.", "no"),
    ("No", "I would say no.", "no"),
    ("Yes", "There is no reason to think so", ""),
    ("Yes", "No doubt", ""),
    ("Yes", "Yes and no", ""),
    ("Yes", "Yes/No", ""),
    ("Yes", "yes or no", ""),
    ("Yes", "Yes, he did. So the answer is no.", ""),
    ("Yes", "Yes, he did. Final answer: no", "no"),
    ("Yes", "Perhaps", ""),
    ("Yes", "Yes\nNo", ""),
    ("Yes", "<b>Yes</b>", "yes"),
    ("Yes", "No", "no"),
    ("valid", "valid", "valid"),
    ("valid", "Valid.", "valid"),
    ("valid", "The argument is valid", "valid"),
    ("valid", "The argument is deductively valid.", "valid"),
    ("valid", "not invalid", "valid"),
    ("invalid", "invalid", "invalid"),
    ("invalid", "Invalid", "invalid"),
    ("invalid", "not valid", "invalid"),
    ("invalid", "It is not deductively valid", "invalid"),
    ("invalid", "The argument isn't valid.", "invalid"),
    ("invalid", "**invalid**, since the premise", "invalid"),
    ("invalid", "valid or invalid", ""),
    ("invalid", "valid", "valid"),
    ("True", "True", "true"),
    ("True", "The statement is true.", "true"),
    ("False", "not true", "false"),
    ("False", "false.", "false"),
    ("True", "True or false", ""),
]
TEXTS = [
    ("Paris", "Paris", "paris"),
    ("Paris", "paris.", "paris"),
    ("Paris", "**Paris**", "paris"),
    ("Paris", "The answer is Paris.", "paris"),
    ("Paris", "Paris, France", "paris"),
    ("Paris", "It is Paris.", "paris"),
    ("Paris", "\\boxed{Paris}", "paris"),
    ("Paris", "Parisian", "parisian"),
    ("Paris", "London", "london"),
    ("Paris", "Not Paris", ""),
    ("Paris", "Paris or London", ""),
    ("Danube", "the Danube", "danube"),
    ("Au", "Au (gold)", "au"),
    ("rita, sue and bob poo", "Rita, Sue and Bob Poo", "rita sue and bob poo"),
    ("Monsters, Inc", "monsters inc.", "monsters inc"),
]
TABLE = [
    *[(key, reply, stated, "") for key, reply, stated in LETTERS],
    *[(key, reply, stated, QUESTION) for key, reply, stated in BY_WORDS],
    *[(key, reply, stated, "") for key, reply, stated in (*NUMBERS, *WORDS, *TEXTS)],
]


@pytest.mark.slow
@pytest.mark.parametrize(("key", "reply", "stated", "question"), TABLE)
def test_it_reads_off_what_a_reply_states(key, reply, stated, question):
    verdict = check_answer(reply, key, question=question)
    assert verdict.stated == stated
    assert bool(verdict.reason) == (stated == "")
    if not stated:
        assert not verdict.correct


@pytest.mark.parametrize(
    ("key", "reply"), [("B", "The answer is **b**"), ("42", "42.0"), ("No", "no."), ("Paris", "It is Paris.")]
)
def test_a_right_reply_is_correct_and_another_is_not(key, reply):
    assert check_answer(reply, key).correct
    for other in ("A", "41", "Yes", "London"):
        assert not check_answer(other, key).correct


def test_the_table_is_long_enough_to_mean_something():
    assert len(TABLE) >= 150


def test_an_ambiguous_reply_says_what_it_names():
    assert "A, B" in check_answer("A or B", "B").reason
    assert "both yes and no" in check_answer("Yes and no", "Yes").reason
    assert "no option E" in check_answer("E", "B", question=QUESTION).reason


def test_the_kind_follows_from_the_key():
    kinds = {
        "B": "letter",
        "(R)": "letter",
        "-3": "number",
        "1,234": "number",
        "no": "yes/no",
        "Invalid": "valid/invalid",
    }
    assert {key: kind_of(key) for key in kinds} == kinds
    assert kind_of("S") == "text"


def test_options_are_read_off_the_question():
    assert options_of(QUESTION) == {"A": "Lyon", "B": "Paris", "C": "New York", "D": "New York City"}


def test_it_refuses_an_empty_key():
    with pytest.raises(ValueError, match="key"):
        check_answer("B", " ")


@pytest.mark.thorough
def test_no_reply_however_odd_brings_it_down():
    import random

    rng = random.Random(5)
    alphabet = "AbB()[]{}\\boxed.,:;- \n0123456789$%yesnoinvalid*`#"
    for _ in range(3000):
        reply = "".join(rng.choice(alphabet) for _ in range(rng.randint(0, 40)))
        for key in ("B", "42", "Yes", "valid", "Paris"):
            check_answer(reply, key, question=QUESTION)


@pytest.mark.slow
@pytest.mark.parametrize(("reply", "key", "question", "verdict"), CASES)
def test_every_rule_holds_for_its_cases(reply, key, question, verdict):
    checked = check_answer(reply, key, question=question)
    assert (checked.correct, checked.is_readable) == (verdict == "right", verdict != "unreadable")
    assert bool(checked.reason) == (verdict == "unreadable")


def test_the_page_says_every_rule():
    page = Path("docs/language-models.md").read_text()
    assert [rule.name for rule in RULES if f"- {rule.says}" not in page] == []
    assert f"now {RULES_VERSION};" in page


def test_every_rule_has_cases_for_and_against():
    assert all(rule.right and (rule.wrong or rule.unreadable) for rule in RULES)


def test_replies_that_outsiders_judged_are_judged_so():
    path = Path(settings.HUNCH_STUDY_DATA) / "tracker_inputs" / "replies.csv"
    if not path.is_file():
        pytest.skip("not tested: HUNCH_STUDY_DATA names no folder with tracker_inputs/replies.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    wrong = [
        row
        for row in rows
        if check_answer(row["reply"], row["key"], question=row["options"]).correct != (row["right"] == "1")
    ]
    assert not wrong


@pytest.mark.parametrize(
    "key", ["A, B", "1e5", "2, 3", "] )", "8:12", "C#", "IV", "5 km", "no", "The end.", "x_1", "3/0"]
)
def test_a_reply_equal_to_its_key_is_right_whatever_its_kind(key):
    for reply in (key, f" {key}\n", f"**{key}**", f"`{key}`", f"<think>no</think>{key}"):
        assert check_answer(reply, key).correct, reply
