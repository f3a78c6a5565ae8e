"""Which characters do these bytes stand for? Decided from the whole file, not from its first kilobytes."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from ragnar_core.errors import DocumentError

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.\-]{2,40})""", re.I)
XML_ENCODING = re.compile(rb"""^\s*<\?xml[^>]{0,100}?encoding\s*=\s*["']([A-Za-z0-9_:.\-]{2,40})["']""")
HEAD_BYTES = 4096  # where HTML and XML look for a declaration
SAMPLE_BYTES = 20_000  # of lines with non-ASCII characters, enough to tell one code page from another
BAD_SHARE = 0.03  # up to this share of broken sequences a file still counts as UTF-8
CONTROL_BYTES = bytes(set(range(32)) - {7, 8, 9, 10, 11, 12, 13, 26, 27}) + b"\x7f"

WESTERN = "éèêëàâäáãåæçíìîïñóòôöõøœúùûüßÿÉÈÀÂÄÁÅÆÇÍÎÑÓÖØŒÚÜ“”‘’„‚–—…•€£§°«»·¿¡©®™ºª"
CENTRAL = "ąćęłńóśźżĄĆĘŁŃÓŚŹŻáčďéěíňřšťúůýžÁČĎÉĚÍŇŘŠŤÚŮÝŽőűŐŰăâîşţĂÂÎŞŢöüäÖÜÄß“”„‚‘’–—…§°«»€"
TURKISH = "çğıöşüÇĞİÖŞÜâîû“”‘’–—…€"
BALTIC = "ąčęėįšųūžĄČĘĖĮŠŲŪŽāēģīķļņŗĀĒĢĪĶĻŅŖõäöüÕÄÖÜ“”„‘’–—…€"
CYRILLIC = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё"
GREEK = "αοιετσνηυρπκμλςάέήίόύώθδγχωφβξζψ"
HEBREW = "יוהלאמתרבשנםכדחפעקגצטזסךףןץ"
ARABIC = "البيمتنرودعسهكفقحجةشصخطزضغثذظىئءأإآؤ"
THAI = "านรกอเงมยลวดทส่้ตปบคหแจพชขใไโะำิีึืุูั็์ๆ"

LATIN_PAGES = (
    ("cp1252", WESTERN),
    ("cp1250", CENTRAL),
    ("cp1254", TURKISH),
    ("cp1257", BALTIC),
    ("mac_roman", WESTERN),
)
SCRIPT_PAGES = (
    ("cp1251", CYRILLIC),
    ("koi8-r", CYRILLIC),
    ("cp866", CYRILLIC),
    ("iso8859-5", CYRILLIC),
    ("cp1253", GREEK),
    ("cp1255", HEBREW),
    ("cp1256", ARABIC),
    ("cp874", THAI),
)
EAST_ASIAN = ("cp932", "gb18030", "euc_jp", "big5", "cp949")
KANA = frozenset(map(chr, [*range(0x3041, 0x3097), *range(0x30A1, 0x30FD)]))
JAPANESE = KANA | set(
    "日本人年月大小中国語文字行会社出東京都市区港数量品名一二三十上下学生見入分前後時事者方間手"
)
CHINESE = (
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里"
)
TAIWANESE = (
    "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡"
)
KOREAN = (
    "이다는의에을가고하지로기한도사를은서시인어자리나아대스정일수보부해계세요안니습합과와들공전구성제주라"
)
FREQUENT = {
    "cp932": JAPANESE,
    "euc_jp": JAPANESE,
    "gb18030": frozenset(CHINESE),
    "big5": frozenset(TAIWANESE),
    "cp949": frozenset(KOREAN),
}
# The rows of each national standard that hold its most frequent ideographs: codec, first and last lead byte.
FREQUENT_ROWS = {
    "cp932": ("cp932", 0x88, 0x97),
    "euc_jp": ("cp932", 0x88, 0x97),
    "gb18030": ("gb2312", 0xB0, 0xD7),
    "big5": ("big5", 0xA4, 0xC6),
    "cp949": ("euc_kr", 0xFF, 0xFF),
}


@dataclass(frozen=True)
class Decoded:
    """Text, and how sure we are of it.

    Attributes:
        text: what the bytes say; sequences that mean nothing became U+FFFD.
        encoding: Python's name of the codec.
        confidence: 0 to 1; None when the encoding was given or declared by the file.
        replaced: number of U+FFFD put in.
    """

    text: str
    encoding: str
    confidence: float | None
    replaced: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know: bytes that could not be read."""
        if not self.replaced:
            return ()
        return (
            f"{self.replaced:,} byte sequences are not valid {self.encoding} and were replaced by U+FFFD.",
        )


def decode(
    data: bytes, *, encoding: str | None = None, declared: str | None = None, markup: bool = False
) -> Decoded:
    """The text of `data`.

    Order of evidence: `encoding` (the person said so), a byte order mark, valid UTF-8 over the whole file,
    a declaration (`declared`, as by an HTTP header; with `markup`, the file's own `<meta charset>` or XML
    declaration), UTF-16 without a mark, UTF-8 with a few broken bytes, and last the code page whose
    characters look most like writing.

    Raises:
        DocumentError: `encoding` names no codec.
    """
    if encoding is not None:
        return _with(data, lookup(encoding), None)
    for mark, name in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return _with(data[len(mark) :], name, None)
    wide = _wide(data)
    if wide is not None:
        return wide
    strict = _strictly(data, "utf-8")
    stated = _stated(data, declared, markup)
    if strict is not None and not (stated == "iso2022_jp" and b"\x1b" in data):
        return Decoded(strict, "utf-8", 1.0)
    if stated is not None:
        return _with(data, stated, None)
    return _guess(data)


def lookup(name: str) -> str:
    """Python's name of the codec that people call `name`. latin-1 and ascii mean cp1252, as on the web.

    Raises:
        DocumentError: there is no such text encoding.
    """
    try:
        info = codecs.lookup(name.strip())
        "".encode(info.name)
    except (LookupError, ValueError):
        raise DocumentError(
            f"There is no encoding {name!r}; use a name such as 'utf-8', 'cp1252' or 'gb18030'."
        ) from None
    return {
        "iso8859-1": "cp1252",
        "ascii": "cp1252",
        "gb2312": "gb18030",
        "gbk": "gb18030",
        "shift_jis": "cp932",
    }.get(info.name, info.name)


def looks_binary(data: bytes) -> bool:
    """True when `data` cannot be text in an encoding we know: NULs that are no UTF-16, many control codes."""
    if not data or any(data.startswith(mark) for mark, _ in BYTE_ORDER_MARKS) or _wide(data) is not None:
        return False
    sample = data[:65_536]
    if sample.count(0) > max(2, len(sample) * 0.0005):
        return True
    controls = len(sample) - len(sample.translate(None, CONTROL_BYTES))
    return controls > max(2, len(sample) * 0.02)


def _with(data: bytes, name: str, confidence: float | None) -> Decoded:
    text = _strictly(data, name)
    if text is not None:
        return Decoded(text, name, confidence)
    text = data.decode(name, errors="replace")
    return Decoded(text, name, confidence, text.count("\ufffd"))


def _strictly(data: bytes, name: str) -> str | None:
    try:
        return data.decode(name)
    except (UnicodeDecodeError, LookupError):
        return None


def _stated(data: bytes, declared: str | None, markup: bool) -> str | None:
    names = [declared] if declared else []
    if markup:
        for pattern in (XML_ENCODING, META_CHARSET):
            found = pattern.search(data[:HEAD_BYTES])
            if found:
                names.append(found[1].decode("ascii"))
    for name in names:
        try:
            codec = lookup(name)
        except DocumentError:
            continue
        text = _strictly(data, codec)
        # A declared page that cannot decode the file is wrong more often than the file is broken.
        if text is not None and codec not in ("utf-16", "utf-16-le", "utf-16-be", "utf-8"):
            return codec
    return None


def _wide(data: bytes) -> Decoded | None:
    """UTF-16 without a byte order mark: every other byte of Latin text is NUL."""
    if len(data) < 4 or len(data) % 2:
        return None
    sample = data[:20_000]
    even, odd = sample[::2].count(0) / len(sample[::2]), sample[1::2].count(0) / len(sample[1::2])
    name = "utf-16-le" if odd > 0.4 and even < 0.05 else "utf-16-be" if even > 0.4 and odd < 0.05 else None
    text = _strictly(data, name) if name else None
    if name is None or text is None:
        return None
    printable = sum(c.isprintable() or c in "\r\n\t" for c in text[:5_000])
    return Decoded(text, name, 0.9) if printable > 0.95 * min(len(text), 5_000) else None


def _guess(data: bytes) -> Decoded:
    lossy = data.decode("utf-8", errors="replace")
    broken = lossy.count("\ufffd")
    foreign = sum(len(run) for run in re.findall(r"[^\x00-\x7f\ufffd]+", lossy))
    if broken <= max(3, BAD_SHARE * foreign) and foreign > 4 * broken:
        return Decoded(lossy, "utf-8", 0.9, broken)

    sample = _around_non_ascii(data)
    high = sum(byte >= 0x80 for byte in sample)
    mixed = len(re.findall(rb"[A-Za-z](?=[\x80-\xff])|[\x80-\xff](?=[A-Za-z])", sample))
    scored = [(_east_asian_score(sample, name), name) for name in EAST_ASIAN]
    if mixed <= 0.3 * high:  # letters of another script stand among themselves
        scored += [(_script_score(sample, name, common), name) for name, common in SCRIPT_PAGES]
    score, name = max(scored)
    if score > 0.5:
        return _with(data, name, round(min(score, 0.99), 2))
    # Ties go to the page that comes first: cp1252 is by far the most frequent.
    latin = [(_latin_score(sample, page, letters), -i, page) for i, (page, letters) in enumerate(LATIN_PAGES)]
    score, _, name = max(latin)
    return _with(data, name, round(max(0.1, min(0.9, score)), 2))


def _around_non_ascii(data: bytes) -> bytes:
    """SAMPLE_BYTES of the lines that hold non-ASCII bytes, from all over the file: the others say nothing."""
    lines = [line for line in data.split(b"\n") if not line.isascii()]
    step = max(1, sum(map(len, lines)) // SAMPLE_BYTES)
    return b"\n".join(lines[::step])[:SAMPLE_BYTES]


def _loosely(sample: bytes, name: str) -> str | None:
    """The sample's text; None when it does not decode. In a long one a few bad bytes are forgiven."""
    decoder = codecs.getincrementaldecoder(name)
    try:
        return decoder().decode(sample)  # a character that the sample's end cuts is no error
    except UnicodeDecodeError:
        text = decoder(errors="replace").decode(sample)
    bad = text.count("\ufffd")
    foreign = len(text) - len(text.encode("ascii", "ignore"))
    return text if bad <= BAD_SHARE * foreign else None


def _east_asian_score(sample: bytes, name: str) -> float:
    """Share of the non-ASCII characters that everyday text is made of; 0 when the bytes do not decode."""
    text = _loosely(sample, name)
    if not text:
        return 0.0
    foreign = [c for c in text if c > "\x7f"]
    glued = len(re.findall(r"[A-Za-z][^\x00-\x7f][A-Za-z]", text))
    return (sum(_everyday(c, name) for c in foreign) - 2 * glued) / max(1, len(foreign))


def _everyday(character: str, name: str) -> float:
    """0 to 1: how usual the character is in writing that uses this encoding."""
    frequent = character in FREQUENT[name]
    if "\u3041" <= character <= "\u30ff":
        return 1.0 if frequent else 0.3
    if "\u3000" <= character <= "\u3020" or "\uff01" <= character <= "\uff5e":  # punctuation, full width
        return 0.9
    if "\uac00" <= character <= "\ud7a3":
        return (
            0.0
            if name != "cp949" or len(character.encode("euc_kr", "ignore")) != 2
            else 0.65 + 0.35 * frequent
        )
    if not "\u4e00" <= character <= "\u9fff":
        return 0.3 if character in "“”‘’—…·×°" else 0.0
    codec, first, last = FREQUENT_ROWS[name]
    coded = character.encode(codec, "ignore")
    return 0.65 + 0.35 * frequent if coded and first <= coded[0] <= last else 0.15


def _script_score(sample: bytes, name: str, common: str) -> float:
    """How much of the high half is everyday letters of that script, with capitals where capitals belong."""
    text = _loosely(sample, name)
    if text is None:
        return 0.0
    foreign = [c for c in text if c > "\x7f"]
    everyday = set(common)
    frequent = set(common[:12])
    good = sum(0.5 + 0.5 * (c.lower() in frequent) for c in foreign if c.lower() in everyday)
    misplaced = len(re.findall(r"(?<=[^\W\d_a-zA-Z])[^\W\d_a-zA-Z]", _only_inner_capitals(text)))
    return (good - misplaced) / max(1, len(foreign))


def _only_inner_capitals(text: str) -> str:
    """Capitals that stand behind a small letter, doubled so that each can be counted; the rest as blanks."""
    return "".join(
        c + c if c.isupper() and before.islower() else " "
        for before, c in zip(" " + text, text, strict=False)
    )


def _latin_score(sample: bytes, name: str, letters: str) -> float:
    text = _loosely(sample, name)
    if text is None:
        return -1.0
    foreign = [c for c in text if c > "\x7f"]
    good = sum(c in letters for c in foreign)
    inner_symbols = len(re.findall(r"(?<=[^\W\d_])[^\w\s'’\-­./\x00-\x7f](?=[^\W\d_])", text))
    inner_symbols += len(re.findall(r"(?<=[a-z])[ºª¹²³¼½¾](?=[a-z])", text))
    capitals = len(re.findall(r"(?<=[a-z])[^\W\d_a-z\x00-\x7f](?=[a-z])", text)) - len(
        re.findall(r"(?<=[a-z])[ß-ÿœšžąćęłńśźżčďěňřťůőűăşţğıėįųūāēģīķļņŗ](?=[a-z])", text)
    )
    return (good - 2 * inner_symbols - capitals) / max(1, len(foreign)) * 0.9
