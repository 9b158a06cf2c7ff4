"""The pictures in docs/pictures can be shown, and scripts/pictures.py makes them of what a terminal printed."""

from __future__ import annotations

import runpy
import struct
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
PICTURES = sorted((ROOT / "docs" / "pictures").iterdir())
SVG = "{http://www.w3.org/2000/svg}"


def check_png(content: bytes) -> None:
    """Raise an error if the content is not a whole PNG: its signature, the checksum of each chunk, and its pixels."""
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, []
    while at < len(content):
        (length,) = struct.unpack_from(">I", content, at)
        name, data = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", content, at + 8 + length) == (zlib.crc32(name + data),)
        chunks.append((name, data))
        at += 12 + length
    assert (chunks[0][0], chunks[-1][0]) == (b"IHDR", b"IEND")
    width, height, depth, colour = struct.unpack_from(">IIBB", chunks[0][1])
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    rows = height * (1 + (width * channels * depth + 7) // 8)
    assert len(zlib.decompress(b"".join(data for name, data in chunks if name == b"IDAT"))) == rows


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_can_be_read(picture):
    """Each picture of docs/pictures is well-formed: an SVG is XML with text, a PNG has all its pixels."""
    if picture.suffix == ".svg":
        assert [*ElementTree.parse(picture).iter(f"{SVG}text")]  # noqa: S314  our own file
    else:
        check_png(picture.read_bytes())


def test_an_escape_sequence_in_two_reads_of_the_terminal_becomes_a_colour(monkeypatch):
    """If a read of the terminal ends within an escape sequence, the picture is XML, and its text has the colour."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    svg = runpy.run_path(str(ROOT / "scripts" / "pictures.py"))["svg"]
    for cut in range(1, 5):
        red = "\x1b[31m"
        picture = svg([(0.0, f"one {red[:cut]}"), (0.5, f"{red[cut:]}two"), (1.0, "three\x1b[0m\n")], "cut")
        texts = {each.text: each.get("class") for each in ElementTree.fromstring(picture).iter(f"{SVG}text")}  # noqa: S314
        assert [*texts] == ["one\N{NO-BREAK SPACE}", "two", "three"]
        assert texts["one\N{NO-BREAK SPACE}"] != texts["two"] == texts["three"]
