from __future__ import annotations

from pages.shared.shell import plain
from pages.shared.text import best_window, snippet, utf16_offsets, utf16_spans


def test_utf16_offsets_count_surrogate_pairs() -> None:
    assert utf16_offsets("a😀b", [0, 1, 2, 3]).tolist() == [0, 1, 3, 4]
    assert utf16_offsets("abc", [0, 3]).tolist() == [0, 3]
    assert utf16_spans("😀 é x", [(2, 3), (4, 5)]) == [[3, 4], [5, 6]]
    assert utf16_spans("abc", []) == []


def test_window_moves_to_the_matches() -> None:
    assert best_window([(900, 905), (930, 935)], 1000, 100) == (880, 980)
    assert best_window([(990, 995)], 1000, 100) == (900, 1000)
    assert best_window([], 1000, 100) == (0, 100)
    assert best_window([(5, 9)], 50, 100) == (0, 50)


def test_snippet_of_a_short_text_is_the_text_on_one_line() -> None:
    assert snippet("a  cut\n\n|table|", [(9, 14)]) == ("a cut |table|", [[7, 12]])


def test_snippet_of_a_long_text_says_where_it_was_cut() -> None:
    text = "filler " * 100 + "the needle lies here " + "after " * 100
    shown, marks = snippet(text, [(704, 710)], 80)
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert [shown[a:b] for a, b in marks] == ["needle"]


def test_snippet_marks_survive_emoji_and_blank_runs() -> None:
    shown, marks = snippet("😀\n\n\nneedle", [(4, 10)])
    assert shown == "😀 needle"
    assert marks == [[3, 9]]
    assert shown.encode("utf-16-le")[2 * 3 : 2 * 9].decode("utf-16-le") == "needle"


def test_snippet_leaves_out_the_marks_of_markdown() -> None:
    assert snippet("## A `b` **c**\n\n| x | y |\n|---|:-:|\n| 1 | 2 |\n", [(6, 7)]) == (
        "A b c | x | y | | 1 | 2 | ",
        [[2, 3]],
    )
    assert snippet("C# snake_case a-b", []) == ("C# snake_case a-b", [])


def test_snippet_leaves_out_the_backslash_before_a_mark() -> None:
    text = r"5 \* 3 \_x\_ \# a\|b \\ **needle** C:\dir"
    shown, marks = snippet(text, [(text.index("needle"), text.index("needle") + 6)])
    assert shown == r"5 * 3 _x_ # a|b \ needle C:\dir"
    assert [shown[a:b] for a, b in marks] == ["needle"]


def test_snippet_leaves_code_as_it_is() -> None:
    assert snippet(r"a `x \* y ** 2` b ``c`d`` \*", [])[0] == r"a x \* y ** 2 b cd *"
    assert snippet("t\n\n```py\na ** b  # \\d\\.\n```\n\n**e** \\_", [])[0] == "t py a ** b # \\d\\. e _"


def test_plain_text_is_no_markdown() -> None:
    assert plain("$5 :red[x] *b*\n<b>") == "\\$5 \\:\u2060red\\[x\\] \\*b\\* \\<b\\>"
