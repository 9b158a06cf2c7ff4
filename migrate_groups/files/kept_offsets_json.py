"""The translated offsets of groups, which ``compare -o`` keeps as JSON in case the source cluster is lost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from migrate_groups.files import strict_json
from migrate_groups.files.read import read_bytes
from migrate_groups.files.runs import translation_json
from migrate_groups.files.runs.change_json import Topic
from migrate_groups.files.runs.translation_json import SourceJson, TranslatedJson
from migrate_groups.files.safe_write import write_whole
from migrate_groups.planning.translation import KeptOffsets

SCHEMA = "migrate-groups/kept-offsets"
SCHEMA_VERSION = 1


class GroupJson(strict_json.Strict, frozen=True):
    """The translated offsets of a source group, one for each partition."""

    source: SourceJson
    translations: tuple[TranslatedJson, ...]


class KeptOffsetsJson(strict_json.Document, frozen=True, kw_only=True):
    """The file. cluster_id: the target cluster. topic_ids: the ids of its topics, by topic name."""

    cluster_id: str
    topic_ids: Mapping[Topic, str]
    groups: tuple[GroupJson, ...]


def save(kept: KeptOffsets, path: Path) -> None:
    """Write the file, and replace it as a whole if it exists. Raises `InvalidInput` if it can't be written."""
    document = KeptOffsetsJson(
        schema=SCHEMA,
        schema_version=SCHEMA_VERSION,
        cluster_id=kept.cluster_id,
        topic_ids=kept.topic_ids,
        groups=tuple(
            GroupJson(source, translation_json.lines(each))
            for each in kept.translations
            if (source := translation_json.source(each)) is not None
        ),
    )
    write_whole(path, lambda file: file.write(strict_json.encode(document)), replace=True)


def load(path: Path) -> KeptOffsets:
    """Return the translated offsets in a file. Raises `InvalidInput` if it is no such file, or was edited."""
    document = strict_json.decode(read_bytes(path), str(path), KeptOffsetsJson, SCHEMA, SCHEMA_VERSION)
    values = (translation_json.value(each.source, each.translations) for each in document.groups)
    return KeptOffsets(
        cluster_id=document.cluster_id,
        topic_ids=document.topic_ids,
        translations=tuple(each for each in values if each is not None),
    )
