"""The write path: draft ▸ validated ▸ secrets hidden ▸ duplicate? ▸ one durable transaction ▸ receipt."""

from recollect.writing.changing import forget, link, update
from recollect.writing.drafts import Draft, WritePolicy, as_asked, as_moment, to_memory
from recollect.writing.remembering import remember, remember_many

__all__ = [
    "Draft",
    "WritePolicy",
    "as_asked",
    "as_moment",
    "forget",
    "link",
    "remember",
    "remember_many",
    "to_memory",
    "update",
]
