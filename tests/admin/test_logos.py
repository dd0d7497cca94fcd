"""A logo: taken by its content alone, stored as the picture and nothing else, named by study files, shown to people."""

import struct
import zlib
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from survey.exceptions import FileErrors
from survey.models import AuditEntry, Logo
from survey.services.base.groups import ensure_researchers_group
from survey.services.studies import creating, logos
from survey.services.studies.logos import LogoRefused, picture_of
from tests import cast

pytestmark = pytest.mark.django_db
ADD = "/admin/survey/logo/add/"


def chunk(kind: bytes, data: bytes, *, crc: int | None = None) -> bytes:
    whole = kind + data
    return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole) if crc is None else crc)


def png(width: int = 3, height: int = 2, *, rows: int | None = None, interlaced: int = 0, more: bytes = b"") -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, interlaced)
    packed = zlib.compress((b"\0" + b"\x10\x20\x30" * width) * (height if rows is None else rows))
    return logos.SIGNATURE + chunk(b"IHDR", head) + more + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def test_a_picture_is_stored_without_what_else_the_file_holds() -> None:
    secret = chunk(b"tEXt", b"Author\0Ada")
    picture, width, height = picture_of(png(more=secret) + b"<script>alert(1)</script>")
    assert (picture, width, height) == (png(), 3, 2)
    assert picture_of(png(1, 1, interlaced=1))[1:] == (1, 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>', "an SVG can carry programs"),
        (b"GIF89a", "not that of a PNG"),
        (b"", "not that of a PNG"),
        (b"x" * (logos.LARGEST + 1), "at most 100,000"),
        (png(2001, 1), "at most 2000 a side"),
        (png(0, 1), "at most 2000 a side"),
        (png(rows=3), "broken"),  # More than the picture: a bomb unpacks to far more.
        (png(rows=1), "broken"),
        (png()[:-12], "broken"),
        (png(more=chunk(b"tEXt", b"x", crc=1)), "broken"),
        (logos.SIGNATURE + chunk(b"IEND", b""), "broken"),
    ],
)
def test_what_is_no_safe_picture_is_refused_with_what_to_do(content: bytes, words: str) -> None:
    with pytest.raises(LogoRefused, match=words):
        logos.store(content, name="university")
    assert not Logo.objects.exists()


def test_a_name_keeps_its_picture() -> None:
    first = logos.store(png(), name="university")
    assert logos.store(png(more=chunk(b"tIME", b"\0" * 7)), name="university") == first
    with pytest.raises(LogoRefused, match="choose another name, such as university-2"):
        logos.store(png(4), name="university")
    with pytest.raises(LogoRefused, match="small letters"):
        logos.store(png(), name="../x")
    assert AuditEntry.objects.filter(action="store_logo").count() == 1


def test_it_is_sent_in_the_browser_under_a_name(admin_client: Client, client: Client) -> None:
    wrong = admin_client.post(ADD, {"file": SimpleUploadedFile("logo.png", b"<svg/>"), "name": "university"})
    assert "save the logo as a PNG" in wrong.content.decode() and not Logo.objects.exists()
    sent = admin_client.post(ADD, {"file": SimpleUploadedFile("logo.svg", png()), "name": "university"}, follow=True)
    assert "The logo university is stored" in sent.content.decode()
    assert Logo.objects.get().created_by is not None
    shown = client.get(reverse("logo", args=["university"]))
    assert shown.content == png() and shown.headers["Content-Type"] == "image/png"
    assert shown.headers["X-Content-Type-Options"] == "nosniff" and "immutable" in shown.headers["Cache-Control"]
    assert client.get(reverse("logo", args=["another"])).status_code == 404


def test_researchers_see_each_others_logos(researcher: Any, as_researcher: Client) -> None:
    logos.store(png(), name="university")
    researcher.groups.add(ensure_researchers_group())
    assert 'src="/logo/university.png"' in as_researcher.get("/admin/survey/logo/").content.decode()


def test_a_study_file_names_a_logo_that_is_there_and_its_institution(client: Client) -> None:
    texts = {"institution": "University of Somewhere", "logo": "university"}
    with pytest.raises(FileErrors, match=r"no logo 'university' here: store it \(`hunch store_logo`\)") as refused:
        cast.study(texts=texts)
    assert [problem.field for problem in refused.value.problems] == ["texts.logo"]
    logos.store(png(), name="university")
    made = cast.open_study(texts=texts)
    page = client.get(made.get_absolute_url()).content.decode()
    assert '<img src="/logo/university.png" alt="University of Somewhere"' in page
    with pytest.raises(FileErrors, match="needs institution"):
        cast.study(texts={"logo": "university"}, slug="other")
    copy: Any = creating.checked_study(
        text=made.source_text.replace("logo =", "# logo ="), source_name="", instead_of=made
    )
    assert copy.config.texts.logo == ""


def test_an_institution_without_a_logo_is_written(client: Client) -> None:
    page = client.get(cast.open_study(texts={"institution": "A & B"}).get_absolute_url()).content.decode()
    assert '<p class="institution">A &amp; B</p>' in page and "<img" not in page


def test_the_command_stores_it_too(tmp_path: Any, capsys: Any) -> None:
    (tmp_path / "x.bin").write_bytes(png())
    call_command("store_logo", str(tmp_path / "x.bin"), "university")
    assert "Stored the logo university, 3 by 2 pixels." in capsys.readouterr().out


def test_printed_screens_bring_the_logo_along(tmp_path: Any) -> None:
    logos.store(png(), name="university")
    cast.study(texts={"institution": "University of Somewhere", "logo": "university"}, stages=[{"sittings": 2}])
    call_command("screens", "cast", out=tmp_path)
    assert (tmp_path / "logo.png").read_bytes() == png()
    assert '<img src="../logo.png" alt="University of Somewhere"' in next((tmp_path / "en").glob("001-*")).read_text()
