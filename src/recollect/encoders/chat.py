"""A chat model behind an OpenAI-shaped endpoint: what it is asked, and what it said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from recollect.domain.errors import ModelUnavailable
from recollect.encoders.endpoint import Endpoint

MOST_CHARACTERS = 100_000

Example: TypeAlias = tuple[str, str]
"""A prompt and the answer that is wanted."""


class Said(NamedTuple):
    """What a model answered, and whether it was cut off because it had said enough."""

    text: str
    is_cut: bool


class Chat:
    """One model at one address: OpenAI, Ollama, vLLM, llama.cpp and many others."""

    def __init__(self, url: str, key: str, model: str) -> None:
        self._endpoint = Endpoint(url, key, suffix="/chat/completions")
        self._model = model

    @property
    def name(self) -> str:
        """Model and server: what may be shown."""
        return self._endpoint.serving(self._model)

    def ask(
        self, prompt: str, *, task: str = "", examples: Sequence[Example] = (), seconds: float, attempts: int = 2
    ) -> str:
        """The answer to one prompt. Timeout when the time is up, ModelUnavailable for every other failure."""
        return self._endpoint.ask(completion(self._model, prompt, task, examples), said, seconds, attempts)

    def say(
        self,
        prompt: str,
        *,
        task: str,
        examples: Sequence[Example],
        seconds: float,
        attempts: int = 2,
        most_tokens: int | None,
    ) -> Said:
        """The same with an answer of so many tokens at most: a small model may repeat itself until the time is up."""
        bound = {} if most_tokens is None else {"max_tokens": most_tokens}
        asked = {**completion(self._model, prompt, task, examples), **bound}
        return self._endpoint.ask(asked, _cut_or_said, seconds, attempts)


def completion(model: str, prompt: str, task: str = "", examples: Sequence[Example] = ()) -> dict[str, Any]:
    """What is sent for the answer to one prompt; examples go before it as if they had been asked and answered."""
    turns = [("system", task)] if task else []
    for asked, answered in examples:
        turns += [("user", asked), ("assistant", answered)]
    messages = [{"role": role, "content": content} for role, content in [*turns, ("user", prompt)]]
    return {"model": model, "messages": messages, "temperature": 0}


def said(answer: Any) -> str:
    """The text of a chat completion."""
    try:
        content = answer["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        content = None
    if not isinstance(content, str):
        raise ModelUnavailable(
            "the answer holds no message", "check that the address is an OpenAI-shaped chat endpoint"
        )
    return content[:MOST_CHARACTERS]


def _cut_or_said(answer: Any) -> Said:
    """A model that was cut off while it was thinking has no message yet."""
    try:
        is_cut = answer["choices"][0].get("finish_reason") == "length"
        is_silent = answer["choices"][0]["message"].get("content") is None
    except (KeyError, IndexError, TypeError, AttributeError):
        is_cut = is_silent = False
    return Said("" if is_cut and is_silent else said(answer), is_cut)
