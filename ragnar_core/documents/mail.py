"""Mail: Outlook's `.msg` through markitdown, and plain `.eml`."""

from __future__ import annotations

import io
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Any

from ragnar_core.documents.html import html_to_markdown
from ragnar_core.documents.read import Reading, Source
from ragnar_core.documents.readers import damaged, markitdown_converter, stream_info

ATTACHMENT_STORAGE = "__attach_version1.0_"
ATTACHMENT_NAMES = ("__substg1.0_3707001F", "__substg1.0_3704001F", "__substg1.0_3001001F")
HTML_BODY = "__substg1.0_10130102"


def read_msg(source: Source) -> Reading:
    """A mail that Outlook saved: sender, recipients, subject and text. Attachments are named, not read."""
    converter = markitdown_converter("OutlookMsgConverter")
    try:
        result = converter.convert(io.BytesIO(source.data), stream_info(source, suffix=".msg"))
        attachments, html = _msg_parts(source.data)
    except Exception as error:
        raise damaged(source, "Outlook", error) from None
    markdown = result.markdown
    if markdown.rstrip().endswith("## Content") and html:  # the text is there as HTML only
        markdown = f"{markdown}\n\n{html_to_markdown(html).markdown}"
    return Reading(markdown, "markitdown (outlook)", title=result.title, notes=_attachment_notes(attachments))


def read_mail(source: Source) -> Reading:
    """A mail in the format in which it travels (RFC 5322)."""
    message = BytesParser(_class=EmailMessage, policy=policy.default).parsebytes(source.data)
    parts = ["# Email Message"]
    headers = [
        f"**{name}:** {message[name]}" for name in ("From", "To", "Cc", "Date", "Subject") if message[name]
    ]
    parts.append("\n".join(headers))
    body = message.get_body(preferencelist=("plain", "html"))
    notes: list[str] = []
    if body is not None:
        parts.append("## Content\n\n" + _text_of(body, notes))
    attachments = [part.get_filename() or part.get_content_type() for part in message.iter_attachments()]
    subject = str(message["Subject"]) if message["Subject"] else None
    notes += _attachment_notes(attachments)
    return Reading("\n\n".join(parts), "mail", title=subject, notes=tuple(notes))


def _text_of(body: Any, notes: list[str]) -> str:
    try:
        text = str(body.get_content())
    except (LookupError, UnicodeError) as error:
        notes.append(f"The text is in an encoding that is not known ({error}).")
        text = body.get_payload(decode=True).decode("utf-8", errors="replace")
    return html_to_markdown(text).markdown if body.get_content_type() == "text/html" else text


def _msg_parts(data: bytes) -> tuple[list[str], str]:
    import olefile  # type: ignore[import-untyped]

    from ragnar_core.documents.encoding import decode

    with olefile.OleFileIO(io.BytesIO(data)) as file:
        storages = {entry[0] for entry in file.listdir() if entry[0].startswith(ATTACHMENT_STORAGE)}
        names = []
        for storage in sorted(storages):
            stream = next(
                (f"{storage}/{name}" for name in ATTACHMENT_NAMES if file.exists(f"{storage}/{name}")), None
            )
            names.append(
                file.openstream(stream).read().decode("utf-16-le", "replace") if stream else "without a name"
            )
        html = decode(file.openstream(HTML_BODY).read(), markup=True).text if file.exists(HTML_BODY) else ""
    return names, html


def _attachment_notes(names: list[str]) -> tuple[str, ...]:
    if not names:
        return ()
    return (f"Attachments were not read: {', '.join(names)}. Save them and read them by themselves.",)
