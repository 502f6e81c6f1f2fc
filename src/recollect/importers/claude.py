"""Claude's conversations.json: the turns of each conversation in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

from recollect.domain.memory import EPISODE, Scope
from recollect.importers.lines import as_list, as_object, as_text, as_time, json_document
from recollect.importers.report import Problem
from recollect.writing import Draft

ROLES = {"human": "user", "assistant": "assistant"}


def sniff(_name: str, head: str) -> bool:
    return head.lstrip()[:1] == "[" and '"chat_messages"' in head


def read(stream: TextIO, _name: str) -> Iterator[Draft | Problem]:
    for place, entry in enumerate(as_list(json_document(stream)), start=1):
        conversation = as_object(entry)
        messages = conversation.get("chat_messages")
        if not isinstance(messages, list):
            yield Problem(place, "a conversation without messages")
        for message in as_list(messages):
            yield from _turn(conversation, as_object(message))


def _turn(conversation: dict[str, Any], message: dict[str, Any]) -> Iterator[Draft]:
    role = ROLES.get(as_text(message.get("sender")))
    blocks = (as_object(block) for block in as_list(message.get("content")))
    said = "\n".join(as_text(block.get("text")) for block in blocks if block.get("type") == "text").strip()
    text = said or as_text(message.get("text")).strip()
    if role is None or not text:
        return
    id, turn = as_text(conversation.get("uuid")), as_text(message.get("uuid"))
    yield Draft(
        text,
        EPISODE,
        scope=Scope(project=as_text(conversation.get("project_uuid")) or None, session=id or None),
        key=f"claude:{turn}" if turn else None,
        created_at=as_time(message.get("created_at")) or as_time(conversation.get("created_at")),
        metadata={"role": role, "title": as_text(conversation.get("name"))},
    )
