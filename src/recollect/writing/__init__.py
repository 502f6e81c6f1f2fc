"""The write path: draft ▸ validated ▸ secrets hidden ▸ duplicate? ▸ one durable transaction ▸ receipt."""

from recollect.writing.changing import forget, link, update
from recollect.writing.drafts import Draft, WritePolicy, as_asked, as_moment, to_memory
from recollect.writing.remembering import Checked, check, remember, remember_checked, remember_many

__all__ = [
    "Checked",
    "Draft",
    "WritePolicy",
    "as_asked",
    "as_moment",
    "check",
    "forget",
    "link",
    "remember",
    "remember_checked",
    "remember_many",
    "to_memory",
    "update",
]
