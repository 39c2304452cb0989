"""The pages' Markdown: what the bot writes can be read, and nothing gets through unescaped."""

from __future__ import annotations

import pytest

from sandbox.github.pages.markdown import render, without_comments


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**bold** and `**code**`", "<p><b>bold</b> and <code>**code**</code></p>"),
        ("two\nlines", "<p>two<br>lines</p>"),
        ("## Head", "<h3>Head</h3>"),
        ("- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
        ("1. a\n2. b", "<ol><li>a</li><li>b</li></ol>"),
        ("| a | b |\n| --- | ---: |\n| 1 | 2 |",
         "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>"),
        ("[x](https://a.invalid/?a=1&b)",
         '<p><a href="https://a.invalid/?a=1&amp;b" rel="nofollow noreferrer">x</a></p>'),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("<details>\n<summary>More</summary>\ntext",
         "<details>\n<summary>More</summary>\n<p>text</p>\n</details>"),
        ("</details>", ""),
    ],
)  # fmt: skip
def test_it_renders(text: str, html: str) -> None:
    assert str(render(text)).strip() == html


def test_task_boxes() -> None:
    text = str(render("- [ ] open <!-- box -->\n- [x] done"))
    assert text.count('type="checkbox" disabled') == 2
    assert text.count("checked") == 1
    assert "box --" not in text


def test_code_keeps_everything_but_as_text() -> None:
    text = str(render("```html\n<script>x</script>\n<!-- shown -->\n**no**\n```\n<!-- hidden -->"))
    assert "<pre>&lt;script&gt;x&lt;/script&gt;\n&lt;!-- shown --&gt;\n**no**</pre>" in text
    assert "hidden" not in text


@pytest.mark.parametrize(
    "text",
    [
        '<img src=x onerror="alert(1)">',
        "<script>alert(1)</script>",
        '[x](https://a" onmouseover="alert(1))',
        "**<b onclick=x>**",
        "| <i> |\n| --- |",
        "- [ ] <svg/onload=alert(1)>",
        "<summary><img src=x></summary>",
        "# <style>*{}</style>",
        "<details open ontoggle=alert(1)>",
    ],
)
def test_nothing_gets_through(text: str) -> None:
    html = str(render(text))
    for tag in ("<img", "<script", "<b onclick", "<i>", "<svg", "<style", "<details open"):
        assert tag not in html
    assert '" on' not in html


def test_an_open_comment_hides_the_rest() -> None:
    assert without_comments("a <!-- b\nc") == "a"
