"""Texts become HTML: everything is escaped except the allowed markup."""

import pytest

from frontend.markdown import as_html
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


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a **magic cloakroom!**", "<p>a <strong>magic cloakroom!</strong></p>"),
        ("# One\n\n###### Six", "<h3>One</h3>\n<h3>Six</h3>"),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("two\nlines", "<p>two<br>\nlines</p>"),
        ("|a|\n|-|\n|1|", "<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>"),
        # Nobody is led away from the page, and nothing is fetched for it.
        ("[here](https://a.example/)", "<p>here</p>"),
        ("<https://a.example/>", "<p>https://a.example/</p>"),
        ("![a <b> cat](https://a.example/c.png)", "<p>a &lt;b&gt; cat</p>"),
        # HTML stays text.
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"),
        ('<b onclick="x">y</b>', '<p>&lt;b onclick="x"&gt;y&lt;/b&gt;</p>'),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("```js\n<i>\n```", "<pre><code>&lt;i&gt;\n</code></pre>"),
        ("&lt;img src=x&gt;", "<p>&lt;img src=x&gt;</p>"),
        ("", ""),
    ],
)
def test_markdown_of_a_model_is_shown_and_does_no_harm(text: str, html: str) -> None:
    assert as_html(text).replace(">\n<", "><").strip() == html.replace(">\n<", "><")
