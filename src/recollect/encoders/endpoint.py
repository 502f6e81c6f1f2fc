"""One remote JSON address, asked with every guard in place: time, size, retries, breaker, no redirects, a hidden key.

Only the address the user configured is ever asked, private ones included; a redirect is an error, so the key cannot
travel to another host.
"""

from __future__ import annotations

import json
import math
import queue
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from recollect.domain.errors import ModelUnavailable, Timeout
from recollect.encoders.transport import Answer, Exchange, Idle, check_address, close_all

T = TypeVar("T")

_IDLE_CONNECTIONS = 4
_BACK_OFF_SECONDS = 0.5
# The request itself is wrong for the server: it is alive, and trying again would change nothing.
_REFUSALS = (400, 413, 422)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much an endpoint may cost us."""

    body_bytes: int = 16 << 20
    failures: int = 3
    """So many failed calls in a row open the breaker …"""
    pause_seconds: float = 30.0
    """… for so long; then one call is let through to try."""


class _Passing(Exception):
    """A failure that may be gone the next moment; `wait` is what the server asked for."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class _Refused(Exception):
    """The server understood and said no; see _REFUSALS."""


class Breaker:
    """Stops asking a server that keeps failing, so that its callers need not wait for it."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._closed_at = 0.0

    def enter(self, name: str) -> None:
        """Let a call through, or say at once that it is hopeless."""
        with self._lock:
            if self._failures < self._limits.failures:
                return
            if self._clock() < self._closed_at:
                raise ModelUnavailable(
                    f"{name} failed {self._failures} times in a row and is left alone for a while",
                    "check that the server runs and that address and key are right",
                )
            # This call is the trial; the others go on waiting for its outcome.
            self._closed_at = self._clock() + self._limits.pause_seconds

    def leave(self, failed: bool) -> None:
        """Count the outcome of a call that was let through."""
        with self._lock:
            self._failures = self._failures + 1 if failed else 0
            self._closed_at = self._clock() + self._limits.pause_seconds


class Endpoint:
    """POSTs JSON to one URL. Thread-safe; connections are kept and used again."""

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        suffix: str = "",
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._address = check_address(url, key, suffix)
        self._key = key
        self._limits = limits or Limits()
        self._clock = clock
        self._sleep = sleep
        self._breaker = Breaker(self._limits, clock)
        self._idle: Idle = queue.LifoQueue(_IDLE_CONNECTIONS)
        weakref.finalize(self, close_all, self._idle)

    @property
    def name(self) -> str:
        """Host and port: what may be shown."""
        return self._address.netloc

    def serving(self, model: str) -> str:
        """A model and this server: what may be shown."""
        return f"{model or 'default'}@{self.name}"

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r})"

    def ask(self, payload: object, read: Callable[[Any], T], seconds: float, attempts: int = 1) -> T:
        """Send, and give the answer through `read` (which raises ModelUnavailable for nonsense).

        Timeout when `seconds` have passed, retries included; ModelUnavailable for everything else.
        """
        self._breaker.enter(self.name)
        failed = True
        try:
            answer = read(self._answer(payload, self._clock() + seconds, attempts))
            failed = False
            return answer
        except _Refused as error:
            failed = False
            raise ModelUnavailable(str(error), "check the model name and the length of the texts") from None
        finally:
            self._breaker.leave(failed)

    def _answer(self, payload: object, deadline: float, attempts: int) -> Any:
        body = json.dumps(payload, ensure_ascii=True, allow_nan=False).encode("ascii")
        for attempt in range(1, attempts + 1):
            try:
                return self._judge(self._exchange(body, deadline))
            except _Passing as error:
                wait = _BACK_OFF_SECONDS * 2 ** (attempt - 1) if error.wait is None else error.wait
                if attempt == attempts or self._clock() + wait >= deadline:
                    raise ModelUnavailable(str(error), "try again later, or check that the server runs") from None
                self._sleep(wait)
        raise AssertionError("attempts must be at least 1")

    def _judge(self, answer: Answer) -> Any:
        """The JSON of a good answer; the right kind of failure for any other."""
        name, status = self.name, answer.status
        if status == 429 or status >= 500:
            raise _Passing(f"{name} answered with status {status}{self._reason(answer)}", _seconds(answer.retry_after))
        if status in _REFUSALS:
            raise _Refused(f"{name} refused the request with status {status}{self._reason(answer)}")
        if 300 <= status < 400:
            raise ModelUnavailable(
                f"{name} answered with a redirect, which is not followed", "configure the final address"
            )
        if status != 200:
            raise ModelUnavailable(
                f"{name} answered with status {status}{self._reason(answer)}", "check address, model name and key"
            )
        return self._parse(answer.body)

    def _parse(self, body: bytes) -> Any:
        try:
            return json.loads(body.decode("utf-8"))
        except (ValueError, RecursionError):
            raise ModelUnavailable(f"{self.name} did not answer with JSON", "check the address") from None

    def _reason(self, answer: Answer) -> str:
        """The server's own words, short, printable, and without the key should it be quoted there."""
        try:
            problem: object = mapping(self._parse(answer.body)).get("error")
        except ModelUnavailable:
            return ""
        text = mapping(problem).get("message", problem)
        if not isinstance(text, str):
            return ""
        shown = text.replace(self._key, "***") if self._key else text
        return ": " + "".join(char for char in shown if char.isprintable())[:200]

    def _exchange(self, body: bytes, deadline: float) -> Answer:
        """One request on its own thread: whatever hangs (name lookup, connect, dripping bytes), we return in time."""
        left = deadline - self._clock()
        if left <= 0:
            raise self._late()
        exchange = Exchange(self._address, self._headers(), body, left, self._limits.body_bytes, self._idle)
        threading.Thread(target=exchange.run, name="recollect-http", daemon=True).start()
        if not exchange.done.wait(left):
            exchange.abort()
            raise self._late()
        if isinstance(exchange.outcome, Answer):
            return exchange.outcome
        if isinstance(exchange.outcome, TimeoutError):
            raise self._late()
        if isinstance(exchange.outcome, ModelUnavailable):
            raise exchange.outcome
        raise _Passing(f"{self.name} cannot be reached: {type(exchange.outcome).__name__}")

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return headers

    def _late(self) -> Timeout:
        return Timeout(f"{self.name} did not answer in time", "check that the server runs, or allow it more time")


def mapping(value: object) -> Mapping[str, Any]:
    """A JSON object, or an empty one where the answer has something else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def number(value: object) -> float | None:
    """A finite JSON number; None for anything else, integers beyond every float included."""
    if type(value) not in (int, float):
        return None
    try:
        converted = float(cast("float", value))
    except OverflowError:
        return None
    return converted if math.isfinite(converted) else None


def _seconds(retry_after: str | None) -> float | None:
    """Retry-After in seconds; the date form is rare enough to fall back to our own back-off."""
    try:
        wait = float(retry_after) if retry_after is not None else -1.0
    except ValueError:
        return None
    return wait if 0 <= wait < 86_400 else None
