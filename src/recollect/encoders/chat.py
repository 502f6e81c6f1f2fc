"""A chat model behind an OpenAI-shaped endpoint: what it is asked, and what it said."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from recollect.domain.errors import ModelUnavailable
from recollect.encoders.endpoint import Endpoint

MOST_CHARACTERS = 100_000
THINKING_TOKENS = 8_192
"""What a model that thinks before it answers gets for that, on top of its answer."""

Example: TypeAlias = tuple[str, str]
"""A prompt and the answer that is wanted."""


class Said(NamedTuple):
    """What a model answered, and whether it was cut off because it had said enough."""

    text: str
    is_cut: bool

    @property
    def is_only_thought(self) -> bool:
        """Whether it was cut off before it came to its answer."""
        return self.is_cut and (not self.text.strip() or ("<think>" in self.text and "</think>" not in self.text))


class Chat:
    """One model at one address: OpenAI, Ollama, vLLM, llama.cpp and many others."""

    def __init__(self, url: str, key: str, model: str) -> None:
        self._endpoint = Endpoint(url, key, suffix="/chat/completions")
        self._model = model
        self._thinks = False
        """Until it turns out."""

    @property
    def name(self) -> str:
        """Model and server: what may be shown."""
        return self._endpoint.serving(self._model)

    def ask(self, prompt: str, *, task: str = "", seconds: float, most_tokens: int, attempts: int = 2) -> Said:
        """The answer to one prompt, of so many tokens at most: a small model may repeat itself until the time is up.

        A model that thinks before it answers is noticed and gets its room. Timeout when the time is up,
        ModelUnavailable for every other failure, and for a model that did not come to its answer.
        """
        deadline, room = time.monotonic() + seconds, THINKING_TOKENS if self._thinks else 0
        told = self.say(prompt, task=task, seconds=seconds, attempts=attempts, most_tokens=most_tokens + room)
        if told.is_only_thought and not room:
            left, room = max(0.0, deadline - time.monotonic()), THINKING_TOKENS
            told = self.say(prompt, task=task, seconds=left, attempts=attempts, most_tokens=most_tokens + room)
            self._thinks = not told.is_only_thought
        if told.is_only_thought:
            raise ModelUnavailable(
                "the language model did not come to its answer", "choose another language_model_name"
            )
        return told

    def say(
        self,
        prompt: str,
        *,
        task: str,
        examples: Sequence[Example] = (),
        seconds: float,
        attempts: int = 2,
        most_tokens: int | None,
    ) -> Said:
        """What it says within so many tokens, an answer or not."""
        asked = completion(self._model, prompt, task, examples, most_tokens)
        return self._endpoint.ask(asked, cut_or_said, seconds, attempts)


def completion(
    model: str, prompt: str, task: str = "", examples: Sequence[Example] = (), most_tokens: int | None = None
) -> dict[str, Any]:
    """What is sent for the answer to one prompt; examples go before it as if they had been asked and answered."""
    turns = [("system", task)] if task else []
    for asked, answered in examples:
        turns += [("user", asked), ("assistant", answered)]
    messages = [{"role": role, "content": content} for role, content in [*turns, ("user", prompt)]]
    bound = {} if most_tokens is None else {"max_tokens": most_tokens}
    return {"model": model, "messages": messages, "temperature": 0, **bound}


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


def cut_or_said(answer: Any) -> Said:
    """The text, and whether it was cut off; a model that was cut off while it was thinking has no message yet."""
    try:
        is_cut = answer["choices"][0].get("finish_reason") == "length"
        is_silent = answer["choices"][0]["message"].get("content") is None
    except (KeyError, IndexError, TypeError, AttributeError):
        is_cut = is_silent = False
    return Said("" if is_cut and is_silent else said(answer), is_cut)
