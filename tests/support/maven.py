"""A small Maven repository on this machine that can fail as a real one does."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from tests.support.http_server import Handler, serving

VERSION = "9.9.9"


class MavenRepository:
    """The files of the repository, by path. failing: by file name, a function to call instead of sending the file."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.failing: dict[str, Callable[[BaseHTTPRequestHandler, bytes], None]] = {}
        self.sent: list[str] = []
        self.url = ""

    def add(self, organisation: str, name: str, version: str, needs: Sequence[tuple[str, str, str]] = ()) -> None:
        """Add a module: its POM and a jar. needs: organisation, name and version of each dependency."""
        dependencies = "".join(
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{number}</version>"
            "</dependency>"
            for group, artifact, number in needs
        )
        stem = f"/{organisation.replace('.', '/')}/{name}/{version}/{name}-{version}"
        self.files[f"{stem}.pom"] = (
            f"<project><modelVersion>4.0.0</modelVersion><groupId>{organisation}</groupId><artifactId>{name}"
            f"</artifactId><version>{version}</version><dependencies>{dependencies}</dependencies></project>"
        ).encode()
        jar = io.BytesIO()
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr("name.txt", stem)
        self.files[f"{stem}.jar"] = jar.getvalue()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Send the requested file or its headers, or call the file's function in ``failing``."""
        name = request.path.rpartition("/")[2]
        content = self.files.get(request.path)
        if content is None:
            request.send_error(404)
        elif name in self.failing:
            self.failing[name](request, content)
        else:
            if request.command == "GET":
                self.sent.append(name)
            send(request, content, len(content))


def send(request: BaseHTTPRequestHandler, content: bytes, length: int) -> None:
    """Send content with this Content-Length, which may be wrong on purpose."""
    request.send_response(200)
    request.send_header("Content-Length", str(length))
    request.end_headers()
    if request.command == "GET":
        request.wfile.write(content)


@contextmanager
def kafka_repository() -> Iterator[MavenRepository]:
    """Serve the modules that the sandbox downloads, in version 9.9.9. Each jar contains the path of its module."""
    repository = MavenRepository()
    kafka = "org.apache.kafka"
    repository.add(kafka, "kafka_2.13", VERSION, [(kafka, "kafka-clients", VERSION)])
    repository.add(kafka, "kafka-clients", VERSION, [("org.slf4j", "slf4j-api", "1.2.3")])
    repository.add(kafka, "kafka-tools", VERSION, [("org.example", "not-wanted", "1")])
    repository.add("org.slf4j", "slf4j-api", "1.2.3")
    repository.add("org.slf4j", "slf4j-simple", "1.2.3", [("org.slf4j", "slf4j-api", "1.2.3")])

    class OfRepository(Handler):
        def do_GET(self) -> None:  # noqa: N802 (the name that http.server calls)
            repository.answer(self)

        do_HEAD = do_GET  # noqa: N815 (the name that http.server calls)

    with serving(OfRepository) as url:
        repository.url = f"{url}/"
        yield repository
