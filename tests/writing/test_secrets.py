"""Secret detection: every kind is found and hidden, ordinary text is left alone, and no input makes it slow."""

from __future__ import annotations

import random
import re
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.stages.secrets import RULES, find, redact, redact_json

LETTERS_DIGITS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


def chars(seed: str, length: int, alphabet: str = LETTERS_DIGITS) -> str:
    """Made-up characters that are the same in every run: no real credential stands in this file."""
    return "".join(random.Random(seed).choices(alphabet, k=length))


def examples(seed: str = "") -> dict[str, list[str]]:
    c = lambda length, alphabet=LETTERS_DIGITS: chars(f"{seed}{length}", length, alphabet)  # noqa: E731
    body = c(200, LETTERS_DIGITS + "+/")
    return {
        "private-key": [
            f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----" for kind in ("", "RSA ")
        ],
        "aws-access-key": ["AKIA" + c(16, string.ascii_uppercase + "234567")],
        "aws-secret-key": ["aws_secret_access_key = " + c(40)],
        "github-token": ["ghp_" + c(36), "gho_" + c(36), "github_pat_" + c(82)],
        "gitlab-token": ["glpat-" + c(20)],
        "slack-token": ["xoxb-" + c(12, string.digits) + "-" + c(24)],
        "slack-webhook": ["https://hooks.slack.com/services/T" + c(8) + "/B" + c(9) + "/" + c(24)],
        "discord-webhook": ["https://discord.com/api/webhooks/" + c(18, string.digits) + "/" + c(68)],
        "discord-token": ["M" + c(23) + "." + c(6) + "." + c(38)],
        "stripe-key": ["sk_live_" + c(24), "rk_live_" + c(30)],
        "anthropic-key": ["sk-ant-api03-" + c(95)],
        "openai-key": ["sk-" + c(48), "sk-proj-" + c(60)],
        "google-key": ["AIza" + c(35)],
        "google-token": ["ya29." + c(60)],
        "google-client-secret": ["GOCSPX-" + c(28)],
        "npm-token": ["npm_" + c(36)],
        "pypi-token": ["pypi-AgEIcHlwaS5vcmc" + c(100)],
        "rubygems-token": ["rubygems_" + c(48, HEX)],
        "sendgrid-key": ["SG." + c(22) + "." + c(43)],
        "mailgun-key": ["key-" + c(32, HEX)],
        "mailchimp-key": [c(32, HEX) + "-us14"],
        "twilio-key": ["SK" + c(32, HEX)],
        "huggingface-token": ["hf_" + c(34)],
        "digitalocean-token": ["dop_v1_" + c(64, HEX)],
        "telegram-token": [c(9, string.digits) + ":AA" + c(33)],
        "shopify-token": ["shpat_" + c(32, HEX)],
        "square-token": ["sq0atp-" + c(22)],
        "databricks-token": ["dapi" + c(32, HEX)],
        "linear-key": ["lin_api_" + c(40)],
        "notion-token": ["ntn_" + c(46)],
        "doppler-token": ["dp.pt." + c(43)],
        "vault-token": ["hvs." + c(90)],
        "grafana-token": ["glsa_" + c(32) + "_" + c(8, HEX)],
        "newrelic-key": ["NRAK-" + c(27, string.ascii_uppercase + string.digits)],
        "postman-key": ["PMAK-" + c(24, HEX) + "-" + c(34, HEX)],
        "planetscale-token": ["pscale_tkn_" + c(43)],
        "groq-key": ["gsk_" + c(52)],
        "dockerhub-token": ["dckr_pat_" + c(27)],
        "terraform-token": [c(14) + ".atlasv1." + c(67)],
        "age-key": ["AGE-SECRET-KEY-1" + c(58, string.ascii_uppercase + string.digits)],
        "azure-key": ["DefaultEndpointsProtocol=https;AccountKey=" + c(86) + "=="],
        "jwt": ["eyJ" + c(30) + ".eyJ" + c(80) + "." + c(43)],
        "url-password": ["postgres://app:" + c(12) + "@db.internal:5432/shop", "https://:" + c(20) + "@host/x"],
        "authorization": [
            "Authorization: Basic " + c(24),
            "curl -H 'Authorization: Bearer " + c(30) + "'",
            "bearer " + c(40),
            "bearer " + c(32, HEX),
        ],
        "password": [
            'password = "correct horse battery"',
            "DB_PASSWORD=s3cr3t-pass",
            "the admin password is Tr0ub4dor&3",
            "api_key: " + c(24),
            "client_secret: '" + c(20) + "'",
        ],
        "card-number": ["4012 8888 8888 1881", "5500-0055-5555-5559", "3782 822463 10005"],
        "social-security-number": ["SSN 078-05-1120"],
    }  # fmt: skip


def test_every_rule_has_an_example() -> None:
    assert set(examples()) == {rule.kind for rule in RULES}


@pytest.mark.parametrize("kind", sorted(examples()))
@pytest.mark.parametrize("frame", ["{}", "we use {} in CI.", "line one\n{}\nline three", "`{}`"])
def test_each_kind_is_found_and_hidden(kind: str, frame: str) -> None:
    for seed in ("a", "b", "c"):
        for secret in examples(seed)[kind]:
            clean, kinds = redact(frame.format(secret))
            assert kind in kinds, secret
            hidden = max(find(secret), key=lambda one: one.end - one.start)
            assert len(secret[hidden.start : hidden.end]) >= 8
            assert secret[hidden.start : hidden.end] not in clean


def test_all_that_was_found_is_hidden_in_order_and_told_sorted() -> None:
    card, key = "4012 8888 8888 1881", "AKIA" + chars("a", 16, string.ascii_uppercase)
    text, kinds = redact(f"pay {card} with {key}.")
    assert text == "pay [REDACTED:card-number] with [REDACTED:aws-access-key]."
    assert kinds == ("aws-access-key", "card-number")


def test_what_is_redacted_is_clean_and_stays_as_it_is() -> None:
    for secrets in examples().values():
        clean, _ = redact(" and ".join(secrets))
        assert find(clean) == ()
        assert redact(clean) == (clean, ())


ORDINARY = [
    "The password policy requires twelve characters",
    "Password resets expire after 24 hours",
    "The token is missing from the request",
    "The token is refreshed automatically",
    "api_key: <your key>",
    "password: ${DB_PASSWORD}",
    "password=os.environ['PW']",
    "secret: changeme",
    "the secret is patience",
    "token = get_token(request)",
    "Keys are rotated every 90 days; the key is stored in Vault",
    "Set ANTHROPIC_API_KEY before running the tests",
    "https://docs.example.com/v1/tokens",
    "postgres://app:password@localhost/app",
    "git@github.com:owner/repo.git",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "Order 1234567890123456 shipped",
    "Order 4012888888881882 shipped",
    "pay with the test card 4111 1111 1111 1111",
    "the header is Bearer 000000000000000000000a0000 in the docs",
    "call 0049 89 1234567 or 555-0123",
    "sk-learn and sk-image are imported",
    "see the key-value store for the key- prefix",
    "Use a bearer token in the Authorization header",
    "Authorization: Bearer <token>",
    "The 2024-05-01 release has version 1.2.3-beta.4+build.5678",
    "Das Passwort ist geheim",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text) == (text, ())


@given(st.text(max_size=300))
def test_offsets_lie_in_the_text_and_do_not_overlap(text: str) -> None:
    place = 0
    for secret in find(text):
        assert place <= secret.start < secret.end <= len(text)
        place = secret.end


def test_a_text_full_of_secrets_is_read_once() -> None:
    clean, kinds = redact("password: hunter22 " * 200_000)
    assert kinds == ("password",) and clean == "password: [REDACTED:password] " * 200_000


def test_names_in_json_are_searched_too_and_none_is_lost() -> None:
    one, two = examples()["github-token"][:2]
    assert list(redact_json({one: "a path"})[0].values()) == ["a path"]
    clean, kinds = redact_json({one: 1, two: 2, "path": 3})
    assert kinds == ("github-token",)
    assert one not in clean and two not in clean
    assert sorted(clean.values()) == [1, 2, 3]


def test_json_is_searched_throughout_and_names_tell() -> None:
    token = examples()["github-token"][0]
    value = {"a": [{"b": token}], "password": "hunter2!", "port": 5432, "note": "fine", "none": None}
    clean, kinds = redact_json(value)
    assert clean == {
        "a": [{"b": "[REDACTED:github-token]"}],
        "password": "[REDACTED:password]",
        "port": 5432,
        "note": "fine",
        "none": None,
    }
    assert kinds == ("github-token", "password")


@pytest.mark.parametrize(
    "value",
    [
        {"password": 12345678},
        {"db": {"api_key": [9876543210]}},
        {"pin": 4711},
        {"door_pin_code": "0042"},
        {"PIN": 90210},
        {"otp": 123456},
        {"cvv": 123},
        {"card": 4012888888881881},
        {"card_number": [4012888888881881]},
        {"ssn": 123456789},
    ],
)
def test_numbers_under_telling_names_are_hidden(value: dict[str, Any]) -> None:
    clean, kinds = redact_json(value)
    assert kinds and "REDACTED" in repr(clean) and not re.search(r"\d", repr(clean))


@pytest.mark.parametrize(
    "value",
    [
        {"pin": 13},  # of a board
        {"pass": 1532, "fail": 3},
        {"tokens": 128000, "max_token_count": 4096},
        {"token": 0.1234567},
        {"password": None, "secret": True},
        {"message_id": 4012888888881881},
        {"port": 5432, "at": 1700000000000},
    ],
)
def test_other_numbers_stay_numbers(value: dict[str, Any]) -> None:
    assert redact_json(value) == (value, ())


def test_the_kinds_are_stable_names() -> None:
    assert all(rule.kind == rule.kind.lower() and " " not in rule.kind for rule in RULES)
    assert all(hint == hint.lower() for rule in RULES for hint in rule.hints)
    assert len({rule.kind for rule in RULES}) >= 25
