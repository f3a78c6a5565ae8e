from __future__ import annotations

import pytest

from ragnar_core.documents.encoding import decode, looks_binary
from ragnar_core.errors import DocumentError

SAMPLES = [
    ("Über den Fluß — “quoted” text, €5\n", "cp1252"),
    ("L'été, où est le garçon? Ça va très bien.", "cp1252"),
    ("El niño comió una manzana. ¿Qué tal?", "cp1252"),
    ("Größe: 5 µm ± 1°", "cp1252"),
    ("café", "cp1252"),
    ("Zażółć gęślą jaźń, wszystko w porządku, że się", "cp1250"),
    ("Příliš žluťoučký kůň úpěl ďábelské ódy", "cp1250"),
    ("Türkçe ığdır şeker güzel", "cp1254"),
    ("Привет мир, это обычный текст", "cp1251"),
    ("Привет мир, это обычный текст", "koi8-r"),
    ("Привет мир, это обычный текст", "cp866"),
    ("Καλημέρα κόσμε", "cp1253"),
    ("مرحبا بالعالم هذا نص", "cp1256"),
    ("สวัสดีชาวโลก", "cp874"),
    ("品名,数量\nりんご,3\n", "cp932"),
    ("日本語のテキスト、カタカナ", "cp932"),
    ("これは日本語の文章です。", "euc_jp"),
    ("人工智能是计算机科学的一个分支，它企图了解智能的实质。", "gb18030"),
    ("你好世界", "gb18030"),
    ("人工智慧是電腦科學的一個分支", "big5"),
    ("안녕하세요 세계 인공지능", "cp949"),
]


@pytest.mark.parametrize(("text", "encoding"), SAMPLES)
def test_legacy_encodings_are_found_out(text: str, encoding: str) -> None:
    decoded = decode(text.encode(encoding))
    assert (decoded.text, decoded.encoding) == (text, encoding)
    assert decoded.confidence is not None
    assert 0.5 <= decoded.confidence < 1.0


@pytest.mark.parametrize("text", [text for text, _ in SAMPLES])
def test_utf_8_is_certain(text: str) -> None:
    decoded = decode(text.encode())
    assert (decoded.text, decoded.encoding, decoded.confidence, decoded.replaced) == (text, "utf-8", 1.0, 0)


@pytest.mark.parametrize("lines", [250, 3_500])
def test_the_whole_file_decides(lines: int) -> None:
    data = b"a line of plain text\n" * lines + "café — fin\n".encode()
    assert decode(data).text.splitlines()[-1] == "café — fin"
    legacy = b"a line of plain text\n" * lines + "café — fin\n".encode("cp1252")
    decoded = decode(legacy)
    assert (decoded.text.splitlines()[-1], decoded.encoding) == ("café — fin", "cp1252")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_settles_it_and_goes(encoding: str) -> None:
    assert decode("Grüße, 世界".encode(encoding)).text == "Grüße, 世界"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_seen(encoding: str) -> None:
    decoded = decode("Hello wörld, plain text".encode(encoding))
    assert (decoded.text, decoded.encoding) == ("Hello wörld, plain text", encoding)


def test_a_bad_byte_costs_one_character_and_is_reported() -> None:
    good = "Grüße aus Köln, schöne Straße. " * 20
    data = good.encode()
    decoded = decode(data[:12] + b"\xff" + data[12:])
    assert (decoded.encoding, decoded.replaced) == ("utf-8", 1)
    assert decoded.text.replace("\ufffd", "") == good
    assert decoded.notes == ("1 byte sequences are not valid utf-8 and were replaced by U+FFFD.",)


@pytest.mark.parametrize(("text", "encoding"), SAMPLES)
def test_a_bad_byte_in_a_long_legacy_file_does_not_change_its_encoding(text: str, encoding: str) -> None:
    line = text.strip().encode(encoding) + b" and more words\n"
    decoded = decode(line * 200 + b"\x81 \xff \n" + line * 200)
    assert decoded.encoding == encoding
    assert decoded.text.startswith(text.strip())
    assert decoded.text.endswith(text.strip() + " and more words\n")


def test_declarations_count_where_they_decode() -> None:
    page = '<meta charset="windows-1251"><p>Да</p>'.encode("cp1251")
    assert decode(page, markup=True).text.endswith("<p>Да</p>")
    assert decode(page, markup=True).confidence is None
    xml = '<?xml version="1.0" encoding="koi8-r"?><p>Да</p>'.encode("koi8-r")
    assert decode(xml, markup=True).text.endswith("<p>Да</p>")
    assert decode("é".encode("cp1250"), declared="iso-8859-2").encoding == "iso8859-2"
    wrong = '<meta charset="iso-8859-1"><p>Grüße</p>'.encode()
    assert decode(wrong, markup=True).text.endswith("<p>Grüße</p>")
    assert decode("Привет мир".encode("cp1251"), declared="utf-8").text == "Привет мир"


def test_latin_1_means_what_the_web_means_by_it() -> None:
    assert decode(b"\x93quoted\x94", declared="iso-8859-1").text == "“quoted”"


def test_an_encoding_that_was_given_is_used() -> None:
    assert decode("łąka".encode("iso8859-2"), encoding="latin2").text == "łąka"
    with pytest.raises(DocumentError, match="There is no encoding 'utf-9'"):
        decode(b"x", encoding="utf-9")


def test_binary_is_told_from_text() -> None:
    assert looks_binary(bytes(range(256)) * 10)
    assert looks_binary(b"\x7fELF\x02\x01\x01" + bytes(100))
    assert not looks_binary("Grüße".encode("utf-16"))
    assert not looks_binary(b"plain\ttext\r\n\f")
    assert not looks_binary(b"")
