"""Texts become HTML: everything is escaped except the allowed markup."""

import pytest

from frontend.templatetags.hunch_text import contact, is_sentence, prose, question


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("one line", "<p>one line</p>"),
        ("two\nlines", "<p>two lines</p>"),
        ("one\n\n\ntwo", "<p>one</p>\n<p>two</p>"),
        ("- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
        (
            "Take:\n- a\n  and more\n- b\nthen go",
            "<p>Take:</p>\n<ul><li>a and more</li><li>b</li></ul>\n<p>then go</p>",
        ),
        ("a - b\n-c", "<p>a - b -c</p>"),
        ('<b>x</b> & "y"', "<p>&lt;b&gt;x&lt;/b&gt; &amp; &quot;y&quot;</p>"),
        ("- <i>x</i>", "<ul><li>&lt;i&gt;x&lt;/i&gt;</li></ul>"),
        ("one\r\n\r\n- a\r\n", "<p>one</p>\n<ul><li>a</li></ul>"),
        ("", ""),
    ],
)
def test_a_studys_text_has_paragraphs_and_lists_alone(text: str, html: str) -> None:
    assert prose(text) == html


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Please write to us through Prolific's messages.", True),
        ("Bitte fragen Sie im Labor nach!", True),
        ("lab@university.example", False),
        ("The Lab, lab@university.example", False),
        ("lab@university.example.", False),
        ("", False),
    ],
)
def test_a_contact_that_says_what_to_do_is_told_from_an_address(text: str, sentence: bool) -> None:
    """So that no page says "Write to: Please write to us"."""
    assert is_sentence(text) is sentence


def test_a_mail_address_of_a_contact_is_a_link_and_all_else_is_text() -> None:
    linked = '<a href="mailto:a.b+c@lab.example.org">a.b+c@lab.example.org</a>'
    assert contact("The <Lab>, a.b+c@lab.example.org") == f"The &lt;Lab&gt;, {linked}"
    assert contact('"onload=x@y') == "&quot;onload=x@y"


def test_a_question_keeps_its_three_marks_and_nothing_else() -> None:
    text = "<b>Is $a<b$?</b><br><BR><b >&lt;<MISSING CONDITION>"
    assert question(text) == "<b>Is $a&lt;b$?</b><br>&lt;BR&gt;&lt;b &gt;&amp;lt;&lt;MISSING CONDITION&gt;"
