"""ChatGPT's conversations.json: each conversation is a tree, of which the branch that was last open is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

from recollect.domain.memory import EPISODE, Scope
from recollect.importers.lines import as_list, as_object, as_text, as_time, json_document
from recollect.importers.report import Problem
from recollect.writing import Draft

ROLES = ("user", "assistant")


def sniff(_name: str, head: str) -> bool:
    return head.lstrip()[:1] == "[" and '"mapping"' in head


def read(stream: TextIO, _name: str) -> Iterator[Draft | Problem]:
    for place, entry in enumerate(as_list(json_document(stream)), start=1):
        conversation = as_object(entry)
        turns = list(_branch(conversation))
        if not as_object(conversation.get("mapping")):
            yield Problem(place, "a conversation without messages")
        for node_id, message in reversed(turns):
            yield from _turn(conversation, node_id, message)


def _branch(conversation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The messages from the current one back to the root; a circle ends where it closes."""
    nodes = as_object(conversation.get("mapping"))
    node_id = as_text(conversation.get("current_node")) or (list(nodes)[-1] if nodes else "")
    seen: set[str] = set()
    while node_id in nodes and node_id not in seen:
        seen.add(node_id)
        node = as_object(nodes[node_id])
        yield node_id, as_object(node.get("message"))
        node_id = as_text(node.get("parent"))


def _turn(conversation: dict[str, Any], node_id: str, message: dict[str, Any]) -> Iterator[Draft]:
    role = as_text(as_object(message.get("author")).get("role"))
    hidden = as_object(message.get("metadata")).get("is_visually_hidden_from_conversation") is True
    parts = as_list(as_object(message.get("content")).get("parts"))
    text = "\n".join(part for part in parts if isinstance(part, str)).strip()
    if role not in ROLES or hidden or not text:
        return
    id = as_text(conversation.get("conversation_id")) or as_text(conversation.get("id"))
    metadata = {"role": role, "title": as_text(conversation.get("title"))}
    yield Draft(
        text,
        EPISODE,
        scope=Scope(session=id or None),
        key=f"chatgpt:{id}:{node_id}",
        created_at=as_time(message.get("create_time")) or as_time(conversation.get("create_time")),
        metadata=metadata,
    )
