"""What a chat model behind an OpenAI-shaped endpoint said."""

from __future__ import annotations

from typing import Any

from recollect.domain.errors import ModelUnavailable
from recollect.encoders.endpoint import Endpoint

MOST_CHARACTERS = 100_000


class Chat:
    """One model at one address: OpenAI, Ollama, vLLM, llama.cpp and many others."""

    def __init__(self, url: str, key: str, model: str) -> None:
        self._endpoint = Endpoint(url, key, suffix="/chat/completions")
        self._model = model

    @property
    def name(self) -> str:
        """Model and server: what may be shown."""
        return f"{self._model or 'default'}@{self._endpoint.name}"

    def ask(self, prompt: str, *, task: str = "", seconds: float, attempts: int = 2) -> str:
        """The answer to one prompt. Timeout when the time is up, ModelUnavailable for every other failure."""
        messages = [{"role": "system", "content": task}] if task else []
        payload = {
            "model": self._model,
            "messages": [*messages, {"role": "user", "content": prompt}],
            "temperature": 0,
        }
        return self._endpoint.ask(payload, said, seconds, attempts)


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
