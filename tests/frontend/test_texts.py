"""Texts become HTML: everything is escaped except the allowed markup."""

import pytest

from frontend.templatetags.hunch_text import prose, question


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


def test_a_question_keeps_its_three_marks_and_nothing_else() -> None:
    text = "<b>Is $a<b$?</b><br><BR><b >&lt;<MISSING CONDITION>"
    assert question(text) == "<b>Is $a&lt;b$?</b><br>&lt;BR&gt;&lt;b &gt;&amp;lt;&lt;MISSING CONDITION&gt;"
