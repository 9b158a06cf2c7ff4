"""Run Kafka's ``kafka-consumer-groups`` many times in one JVM, because the start of a JVM takes over a second."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from py4j.java_gateway import GatewayParameters, JavaGateway, find_jar_path
from py4j.protocol import Py4JJavaError, Py4JNetworkError

from migrate_groups.sandbox.broker import Sandbox
from tests.support.broker_world import until

CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_SECONDS = 30


class KafkaTool:
    """Runs ``kafka-consumer-groups`` on a sandbox broker. A usage error ends the JVM; the next call starts another."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self._sandbox, self._folder = sandbox, folder
        self._process: subprocess.Popen[str] | None = None
        self._gateway: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._gateway.close()
            self._process.kill()
            self._process.communicate()

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the tool, and return its exit code and its output; ``--bootstrap-server`` is added."""
        if self._process is None:
            self._start()
        jvm, files = self._gateway.jvm, [self._folder / name for name in ("stdout", "stderr")]
        words = ["--bootstrap-server", self._sandbox.bootstrap_servers, *arguments]
        array = self._gateway.new_array(jvm.java.lang.String, len(words))
        for number, word in enumerate(words):
            array[number] = word
        for file, redirect in zip(files, (jvm.java.lang.System.setOut, jvm.java.lang.System.setErr), strict=True):
            redirect(jvm.java.io.PrintStream(str(file), "UTF-8"))
        code = 0
        try:
            getattr(jvm, CONSUMER_GROUPS).main(array)
        except Py4JJavaError:  # the tool does not catch an unknown option, and would exit with 1
            code = 1
        except Py4JNetworkError:
            code = self._ended()
        return subprocess.CompletedProcess(words, code, *(file.read_text("utf-8") for file in files))

    def make_share_group(self, group: str, topic: str, *, exists: Callable[[], bool]) -> None:
        """Make a share group (KIP-932) without members: its only member leaves when the group exists.

        exists: returns whether the group exists.
        """
        if self._process is None:
            self._start()
        jvm = self._gateway.jvm
        properties = jvm.java.util.Properties()
        properties.put("bootstrap.servers", self._sandbox.bootstrap_servers)
        properties.put("group.id", group)
        for each in ("key", "value"):
            properties.put(f"{each}.deserializer", "org.apache.kafka.common.serialization.StringDeserializer")
        member = jvm.org.apache.kafka.clients.consumer.KafkaShareConsumer(properties)
        member.subscribe(jvm.java.util.Collections.singletonList(topic))
        until(lambda: member.poll(jvm.java.time.Duration.ofMillis(100)) is not None and exists())
        member.close()

    @contextmanager
    def consumer(self, group: str, topic: str, **settings: str) -> Iterator[tuple[Any, Any]]:
        """Yield a Java ``KafkaConsumer`` that subscribes to the topic, and a ``Duration`` for its method ``poll``.

        settings: further properties, with ``_`` in place of each dot. It does not commit.
        """
        if self._process is None:
            self._start()
        jvm = self._gateway.jvm
        deserializer = "org.apache.kafka.common.serialization.StringDeserializer"
        properties = jvm.java.util.Properties()
        for name, value in {
            "bootstrap_servers": self._sandbox.bootstrap_servers,
            "group_id": group,
            "enable_auto_commit": "false",
            "key_deserializer": deserializer,
            "value_deserializer": deserializer,
            **settings,
        }.items():
            properties.put(name.replace("_", "."), value)
        consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties)
        try:
            consumer.subscribe(jvm.java.util.Collections.singletonList(topic))
            yield consumer, jvm.java.time.Duration.ofMillis(100)
        finally:
            consumer.close()

    def _start(self) -> None:
        *options, classpath = self._sandbox.tool_command
        # Kafka's jars come first, as in the class-data archive.
        command = [*options, f"{classpath}{os.pathsep}{find_jar_path()}", "py4j.GatewayServer"]
        self._process = subprocess.Popen(
            [*command, "--die-on-broken-pipe", "--enable-auth", "0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout
        port, token = (self._process.stdout.readline().strip() for _ in range(2))
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=int(port), auth_token=token))

    def _ended(self) -> int:
        """Wait for the end of the JVM, and return its exit code."""
        assert self._process
        code = self._process.wait(_SECONDS)
        self._process.communicate()
        self._gateway.close()
        self._process = self._gateway = None
        return code
