"""One request to the daemon, spoken by hand over a socket: an HTTP library would take longer to load than to answer."""

from __future__ import annotations

from recollect.doors.hook import home as places
from recollect.doors.hook.documents import dumped, parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable
    from typing import Any, Protocol

    from recollect.doors.hook.deadline import Deadline

    class Connection(Protocol):
        """As much of a socket as is needed."""

        def settimeout(self, value: float, /) -> None: ...
        def sendall(self, data: bytes, /) -> None: ...
        def recv(self, size: int, /) -> bytes: ...


LONGEST_ANSWER = 16 * 1024 * 1024
"""Answers hold whole memories, and one may have a mebibyte."""


class NotRunning(Exception):
    """Nobody listens: a daemon can be started."""


class NoAnswer(Exception):
    """Somebody listens, but no usable answer came in time."""


class Refused(NoAnswer):
    """The daemon answered that it will not do this, now or later."""


def ask(
    home: str,
    path: str,
    document: dict[str, Any] | None,
    deadline: Deadline,
    meanwhile: Callable[[], object] | None = None,
) -> dict[str, Any]:
    """The daemon's answer to a POST, or to a GET where there is no document; else NotRunning or NoAnswer.

    `meanwhile` is done while the daemon thinks.
    """
    secret = places.token(home)
    if not secret:
        raise NotRunning
    request = _request(path, secret, None if document is None else dumped(document).encode())
    for place in places.addresses(home):
        connection = _socket_for(place)
        try:
            connection.settimeout(_time_for(deadline))
            connection.connect(place)
        except TimeoutError:
            connection.close()
            raise NoAnswer("connecting took too long") from None
        except OSError:
            connection.close()
            continue
        try:
            return talk(connection, request, deadline, meanwhile)
        finally:
            connection.close()
    raise NotRunning


def _socket_for(place: str | tuple[str, int]) -> _socket.socket:
    """A socket of the kind that the place needs. The module `socket` would take as long to load as Python itself."""
    import _socket

    if isinstance(place, str):
        return _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    return _socket.socket(_socket.AF_INET6 if ":" in place[0] else _socket.AF_INET, _socket.SOCK_STREAM)


def talk(
    connection: Connection, request: bytes, deadline: Deadline, meanwhile: Callable[[], object] | None = None
) -> dict[str, Any]:
    """Send, do what is to be done meanwhile, then read to the end of the answer, for as long as there is time."""
    received = bytearray()
    try:
        connection.settimeout(_time_for(deadline))
        connection.sendall(request)
        if meanwhile is not None:
            meanwhile()
        while not _is_whole(received):
            connection.settimeout(_time_for(deadline))
            piece = connection.recv(65536)
            if not piece:
                break
            received += piece
            if len(received) > LONGEST_ANSWER:
                raise NoAnswer("the answer is too long")
    except OSError as error:
        raise NoAnswer(f"the connection broke: {error}") from None
    return _document(bytes(received))


def _time_for(deadline: Deadline) -> float:
    """What is left, as a timeout: one of zero would mean something else to a socket."""
    left = deadline.left()
    if left <= 0:
        raise NoAnswer("the time is up")
    return left


def _request(path: str, secret: str, body: bytes | None) -> bytes:
    about = "" if body is None else f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    head = (
        f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {secret}\r\n{about}Connection: close\r\n\r\n"
    )
    return head.encode("ascii") + (body or b"")


def _is_whole(received: bytearray) -> bool:
    """Whether as much has come as the head promises; without a promise, the end of the connection decides."""
    head = received.find(b"\r\n\r\n")
    for line in bytes(received[: max(head, 0)]).split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return len(received) - head - 4 >= int(value)
    return False


def _document(received: bytes) -> dict[str, Any]:
    head, _, body = received.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    status = int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/") and words[1].isdigit() else 0
    if status in (400, 404, 413, 422):
        raise Refused(f"the daemon refused with {status}")
    if status != 200:
        raise NoAnswer(f"the daemon answered {status or 'nonsense'}")
    found = parsed(body)
    if not found:
        raise NoAnswer("the answer is no JSON object")
    return found
