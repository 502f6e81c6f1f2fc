"""Which addresses, keys and options are accepted, and when an answer is another model's."""

from __future__ import annotations

import pytest

from recollect.domain.errors import InvalidInput, ModelUnavailable
from recollect.encoders.endpoint import Endpoint
from recollect.encoders.http import RemoteModel, check_model, split_options
from recollect.encoders.transport import check_address, is_private

KEY = "sk-very-secret-123"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/v1",
        "file:///etc/passwd",
        "http://",
        "https:///v1",
        "http://user:pass@host/v1",
        "http://ho st/v1",
        "http://host/v1\r\nX-Evil: 1",
        "http://host:99999/v1",
        "http://[::1/v1",
        "http://hôst/v1",
    ],
)
def test_a_wrong_address_is_invalid_input(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Endpoint(url)
    assert caught.value.hint


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel", "nul\x00"])
def test_a_wrong_key_is_invalid_input_and_not_repeated(key: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Endpoint("https://host/v1", key)
    assert key not in str(caught.value)


def test_a_key_never_travels_in_clear_text_over_the_open_net() -> None:
    with pytest.raises(InvalidInput, match="clear text"):
        Endpoint("http://api.example.org/v1", KEY)
    for url in ("https://api.example.org/v1", "http://localhost:11434/v1", "http://192.168.1.5/v1", "http://gpu/v1"):
        Endpoint(url, KEY)
    Endpoint("http://api.example.org/v1")


def test_the_path_is_completed_once() -> None:
    for url in ("https://h/v1", "https://h/v1/", "https://h/v1/embeddings", "https://h/v1/embeddings/"):
        assert check_address(url, "", "/embeddings").path == "/v1/embeddings"
    assert check_address("https://h/v1?api-version=2#x=1", "", "/embeddings").geturl() == (
        "https://h/v1/embeddings?api-version=2"
    )


@pytest.mark.parametrize(
    ("host", "private"),
    [("127.0.0.1", True), ("::1", True), ("10.1.2.3", True), ("gpu", True), ("8.8.8.8", False), ("a.org", False)],
)
def test_private_hosts_are_known(host: str, private: bool) -> None:
    assert is_private(host) is private


def test_options_travel_in_the_fragment() -> None:
    url, remote = split_options("http://h/v1#query_prefix=search_query:%20&max_tokens=2048&dimension=768")
    assert url == "http://h/v1"
    assert remote == RemoteModel(dimension=768, max_tokens=2048, query_prefix="search_query: ")
    assert split_options("http://h/v1") == ("http://h/v1", RemoteModel())


@pytest.mark.parametrize("fragment", ["color=red", "dimension=-1", "dimension=0", "max_tokens=many", "dimension="])
def test_wrong_options_are_invalid_input(fragment: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        split_options(f"http://h/v1#{fragment}")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("asked", "named", "same"),
    [
        ("nomic-embed-text", "nomic-embed-text:latest", True),
        ("text-embedding-ada-002", "text-embedding-ada-002-v2", True),
        ("BAAI/bge-small", "bge-small", True),
        ("voyage-3", "", True),
        ("", "anything", True),
        ("voyage-3", "minilm", False),
        ("text-embedding-3-small", "text-embedding-3-large", False),
    ],
)
def test_another_model_is_noticed(asked: str, named: str, same: bool) -> None:
    if same:
        check_model({"model": named}, asked)
    else:
        with pytest.raises(ModelUnavailable, match="instead of"):
            check_model({"model": named}, asked)
