from __future__ import annotations

from email.message import EmailMessage
from types import ModuleType

import pytest

from ragnar_core.documents import read_bytes
from ragnar_core.errors import DocumentError


def test_outlook_mail(make: ModuleType) -> None:
    document = read_bytes(make.mail("Größe", "Hello\r\nBob", attachments=["plan.pdf", "b.xlsx"]), "m.msg")
    assert document.text == (
        "# Größe\n\n# Email Message\n\n**From:** ann@example.com\n**To:** Bob\n**Subject:** Größe\n\n## Content\n\n"
        "Hello\nBob"
    )
    assert document.report.notes == (
        "Attachments were not read: plan.pdf, b.xlsx. Save them and read them by themselves.",
    )
    assert document.report.converter == "markitdown (outlook)"


def test_outlook_mail_under_another_name(make: ModuleType) -> None:
    assert "Hello" in read_bytes(make.mail("S", "Hello"), "mail.dat").text
    with pytest.raises(DocumentError, match="damaged"):
        read_bytes(make.mail("S", "Hello")[:900], "m.msg")


def test_internet_mail() -> None:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = (
        "Ann <ann@example.com>",
        "bob@example.com",
        "Über alles",
    )
    message.set_content("Plain text\n")
    message.add_alternative("<p>Rich</p>", subtype="html")
    message.add_attachment(b"x", maintype="application", subtype="pdf", filename="a.pdf")
    document = read_bytes(message.as_bytes(), "m.eml")
    assert document.text == (
        "# Über alles\n\n# Email Message\n\n**From:** Ann <ann@example.com>\n**To:** bob@example.com\n"
        "**Subject:** Über alles\n\n## Content\n\nPlain text"
    )
    assert document.report.notes[0].startswith("Attachments were not read: a.pdf.")


def test_mail_that_is_html_only() -> None:
    message = EmailMessage()
    message["From"], message["Subject"] = "a@example.com", "S"
    message.set_content("<p>Rich <b>text</b></p>", subtype="html")
    assert read_bytes(message.as_bytes(), "m.eml").text.endswith("Rich **text**")
