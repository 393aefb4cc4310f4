"""Which texts hold secrets, and what is shown of them."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.model.masked_logs import MaskedPieces, known_secrets, masked_line
from cockpit.model.masking import masked, masked_bytes, masked_env, revealed
from cockpit.model.secret_signs import MASK, is_secret_name

pytestmark = pytest.mark.req("TR-10")

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N"
HF = "hf_aBcDeFgHiJkLmNoPqRsTuVwX"
GITHUB = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
AWS = "AKIAIOSFODNN7EXAMPLE"
KEY = (
    "-----BEGIN OPENSSH PRIVATE KEY-----\n"
    "b3BlbnNzaC1rZXktdjEAAAAA\nAAAABAAAAMwAAAAtzc2gt\n"
    "-----END OPENSSH PRIVATE KEY-----"
)


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "token", "GITHUBTOKEN", "accessToken", "WANDB_API_KEY", "OPENAI_APIKEY", "KEY", "SSH_KEY"),
        *("DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "SECRET", "ClientSecret", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"),
        *("GOOGLE_APPLICATION_CREDENTIALS", "MY_CREDENTIAL", "REDIS_AUTH", "DB_PASS", "client-key-data"),
    ],
)
def test_a_name_says_that_its_value_is_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "TOKENIZERS_PARALLELISM",
            "MAX_TOKENS",
            "PWD",
            "OLDPWD",
            "AWS_REGION",
            "AUTHOR",
            "MONKEY",
            "KEYBOARD",
            "PATH",
        ),
        *("SSH_AUTH_SOCK", "COMPASS", "PATTERN", "CUDA_VISIBLE_DEVICES", "HOME"),
    ],
)
def test_other_names_do_not(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("HF_TOKEN=abc python train.py", "HF_TOKEN=*** python train.py"),
        ("TOKEN=abc123secret", "TOKEN=***"),
        ("export DB_PASSWORD='two words'; run", "export DB_PASSWORD='***'; run"),
        ('env WANDB_API_KEY="k e y"', 'env WANDB_API_KEY="***"'),
        ("train --token=abc --epochs 3", "train --token=*** --epochs 3"),
        ("train --hf-token abc --epochs 3", "train --hf-token *** --epochs 3"),
        ("train --api-key 'a b'", "train --api-key '***'"),
        ("argv: --token, abc, --epochs, 3", "argv: --token, ***, --epochs, 3"),
        ("AWS_SECRET_ACCESS_KEY=wJalr/K7MDENG/bPx", "AWS_SECRET_ACCESS_KEY=***"),
        ("PASSWORD=ab,cd", "PASSWORD=***"),
        ("password: hunter2", "password: ***"),
        ("password 12345 is wrong; password=12345", "password 12345 is wrong; password=***"),
        ("git clone https://me:s3cr3t@host/x.git", "git clone https://me:***@host/x.git"),
        (f"git clone https://{GITHUB}@host/x.git", "git clone https://***@host/x.git"),
        ("postgres://user:p%40ss@db:5432/x", "postgres://user:***@db:5432/x"),
        ("curl -H 'Authorization: Bearer abc.def-123'", "curl -H 'Authorization: Bearer ***'"),
        ("authorization=Basic dXNlcjpwYXNz", "authorization=Basic ***"),
        ("sent Bearer abcdef123456", "sent Bearer ***"),
        (f"logged in with {HF}.", "logged in with ***."),
        (f"{GITHUB},{AWS}", "***,***"),
        (f"cookie {JWT};", "cookie ***;"),
        ("sk-proj-abcdefghijklmnop1234 used", "*** used"),
        (f"key:\n{KEY}\nend", f"key:\n{KEY.splitlines()[0]}***{KEY.splitlines()[-1]}\nend"),
        ("https://host/x?access_token=abcd1234&page=2", "https://host/x?access_token=***&page=2"),
        (
            "- name: HF_TOKEN\n  value: abc\n- name: A\n  value: b",
            "- name: HF_TOKEN\n  value: ***\n- name: A\n  value: b",
        ),
        ("    client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ==", "    client-key-data: ***"),
        ("my_token = abc-123-def", "my_token = ***"),
        ("TOKEN_A=\x1b[1;32mabc\x1b[0m \x1b[31m" + HF, "TOKEN_A=\x1b[1;32m***\x1b[0m \x1b[31m***"),
        ("token: aB3dE5gH7jK9mN1pQ", "token: ***"),
    ],
)
def test_a_secret_in_text_is_masked_and_its_name_stays(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "tokens/s: 12345 tokens=4096 max_tokens=100",
        "script.input: /home/ann/work/secret: permission denied; password: not set; secret: cannot be read",
        "next token: the; pad_token='<pad>' eos_token=</s> token_id=50256",
        "tokenizer=bert-base-uncased --tokenizer gpt2-xl-2019",
        "key=value sort_key: loss keyboard=de --key-bits=2048",
        "run HF_TOKEN=$HF_TOKEN and --token ${TOKEN} and $(cat token)",
        "secrets: none; password: null; token=None",
        "https://host:8080/path?x=1@2 and user@host and ssh://me@host",
        "the secret is out, and the password was changed",
        "sk-learn-random-forest-2024 and task-abcdefghijklmnopqrstuvwx",
        "first_token_latency=12.3ms time_per_token: 0.12s",
        "Press the key: Enter",
        "author=alice authors: bob",
    ],
)
def test_text_that_only_looks_similar_stays(text: str) -> None:
    assert masked(text) is text or masked(text) == text


def test_json_stays_json_whatever_the_type_of_the_value() -> None:
    document = {
        "env": {"HF_TOKEN": 'a\\b"c', "PIN_PASSWORD": 1234, "PLAIN": "x", "KEY": "abc", "redis_auth": "a{b}"},
        "credentials": {"user": "me", "password": "a, b"},
        "argv": ["run", "--token", "abc", "--n", "3"],
        "path": '{"client_secret": "abc"}',
        "log": f"a\nHF_TOKEN=abc\n{HF}\nBearer abcdef1234",
        "command": 'curl -H "Authorization: Bearer abc123456" https://a:b@c/',
        "env_list": [{"name": "API_KEY", "value": "abc"}],
    }
    shown = json.loads(masked(json.dumps(document)))
    assert shown == {
        "env": {"HF_TOKEN": MASK, "PIN_PASSWORD": MASK, "PLAIN": "x", "KEY": MASK, "redis_auth": MASK},
        "credentials": {"user": "me", "password": MASK},
        "argv": ["run", "--token", MASK, "--n", "3"],
        "path": f'{{"client_secret": "{MASK}"}}',
        "log": f"a\nHF_TOKEN={MASK}\n{MASK}\nBearer {MASK}",
        "command": f'curl -H "Authorization: Bearer {MASK}" https://a:{MASK}@c/',
        "env_list": [{"name": "API_KEY", "value": MASK}],
    }


@given(
    st.dictionaries(st.sampled_from(["HF_TOKEN", "PASSWORD", "plain", "key"]), st.text() | st.integers() | st.none())
)
def test_any_json_stays_json(values: dict[str, object]) -> None:
    for text in (json.dumps(values), json.dumps(values, ensure_ascii=False), json.dumps(json.dumps(values))):
        json.loads(masked(text))


@given(st.text(alphabet="ab1=: \"'\\,{}[]\n$-_.@/TOKEN") | st.text())
def test_masking_twice_changes_nothing_more(text: str) -> None:
    once = masked(text)
    assert masked(once) == once


def test_variables_are_masked_by_name_and_by_what_they_hold() -> None:
    env = {"KEY": "x", "URL": "https://me:pw@host/", "EMPTY_TOKEN": "", "HOME": "/home/me"}
    assert masked_env(env) == {"KEY": MASK, "URL": f"https://me:{MASK}@host/", "EMPTY_TOKEN": "", "HOME": "/home/me"}


def test_values_of_secret_variables_are_found_in_other_text() -> None:
    values = known_secrets({"A_TOKEN": "hunter22", "B_TOKEN": "hunter22-long", "SHORT_TOKEN": "abc", "N": "visible1"})
    assert values == ("hunter22-long", "hunter22")
    line = masked_line(b"is hunter22-long, hunter22 and visible1", b"", values)
    assert line == b"is ***, *** and visible1"


def test_nothing_is_masked_where_the_user_wants_to_see_it() -> None:
    with revealed():
        assert masked(f"HF_TOKEN={HF}") == f"HF_TOKEN={HF}"
        assert masked_bytes(b"PASSWORD=a") == b"PASSWORD=a"
        assert masked_env({"KEY": "x"}) == {"KEY": "x"}
        assert masked_line(b"hunter22", KEY[:60].encode(), ("hunter22",)) == b"hunter22"
        assert MaskedPieces(("hunter22",)).feed(b"hunter22 TOKEN=") == b"hunter22 TOKEN="
    assert masked("PASSWORD=a") == "PASSWORD=***"


def test_bytes_that_are_no_text_stay() -> None:
    assert masked_bytes(b"\xff\xfe HF_TOKEN=abc \x80") == b"\xff\xfe HF_TOKEN=*** \x80"
    plain = b"\xff loss=0.5\n"
    assert masked_bytes(plain) is plain


@pytest.mark.parametrize("line", ["loss=0.43 images/s 120", "tokens/s: 1234 key=a token: the", "token" * 40])
def test_a_megabyte_of_log_is_looked_through_quickly(line: str) -> None:
    text = f"{line}\n" * ((1 << 20) // (len(line) + 1))
    began = time.thread_time()
    assert masked(text) == text
    assert time.thread_time() - began < 20


def test_a_private_key_of_which_a_window_has_only_the_beginning_is_masked() -> None:
    assert masked("x\n-----BEGIN PRIVATE KEY-----\nabcd\nefgh") == "x\n-----BEGIN PRIVATE KEY-----***"


def test_a_line_in_the_middle_of_a_private_key_is_masked() -> None:
    first, *middle, _ = KEY.encode().splitlines(keepends=True)
    assert masked_line(middle[1], first + middle[0]) == b"***\n"
    assert masked_line(b"abcd\n", KEY.encode() + b"\n") == b"abcd\n"
    assert masked_line(b"Error: no key\n", first) == b"Error: no key\n"


def test_a_secret_is_found_wherever_the_pieces_of_a_log_are_cut() -> None:
    text = f"begin\nHF_TOKEN=abcdef end\r50 %\rsays hunter22 {HF}\n{KEY}\nlast Bearer abcdef123456".encode()
    whole = masked_bytes(text).replace(b"hunter22", b"***")
    for cut in range(len(text) + 1):
        log = MaskedPieces(("hunter22",))
        assert log.feed(text[:cut]) + log.feed(text[cut:]) + log.finish() == whole
    log = MaskedPieces(("hunter22",))
    assert b"".join(log.feed(text[at : at + 1]) for at in range(len(text))) + log.finish() == whole


def test_what_cannot_be_a_secret_is_shown_at_once() -> None:
    log = MaskedPieces()
    assert log.feed(b"epoch 1\nContinue? ") == b"epoch 1\nContinue? "
    assert log.feed(b"\r 10 %\r 20 % ") == b"\r 10 %\r 20 % "
    assert log.feed(b"x" * 100_000) == b"x" * 100_000


@pytest.mark.parametrize(
    "part", ["token", "key=", "token" + " " * 100, "://a:", "-----BEGIN PRIVATE KEY-----", "eyJ.", "sk-a-"]
)
def test_hostile_text_takes_no_more_than_linear_time(part: str) -> None:
    def seconds(length: int) -> float:
        text = part * (length // len(part))
        began = time.thread_time()
        masked(text)
        return time.thread_time() - began

    # Eight times the text takes eight times as long, and 64 times as long if it were quadratic.
    assert min(seconds(160_000) for _ in range(2)) < 32 * max(seconds(20_000) for _ in range(3)) + 0.05


SPLIT = (
    b"a HF_TOKEN=planted-1 b\n",
    b"alone planted-value-7, and again planted-value-7\n",
    b"planted-value-7",
    b"ghp_Planted0123456789abcdefABCDEF and\n",
    b"run --api-key='planted 3' now\n",
    b"-----BEGIN PRIVATE KEY-----\nMIIplanted\nAAAA\n-----END PRIVATE KEY-----\n",
    b"https://me:planted-4@host/x\n",
    b"curl -H 'Authorization: Bearer planted-5'\n",
    b'{"client_secret": "planted-6"}\n',
    b"- run\n- --token\nplanted-8\n",
    b"- name: HF_TOKEN\n  value: planted-9\n- name: A\n  value: seen\n",
    b"progress 1\rHF_TOKEN=planted-1\rprogress 2\n",
)


@pytest.mark.parametrize("text", SPLIT)
def test_a_secret_that_two_pieces_of_a_log_share_is_masked_in_both(text: bytes) -> None:
    known = ("planted-value-7",)
    for at in range(len(text)):
        pieces = MaskedPieces(known)
        shown = pieces.feed(text[:at]) + pieces.feed(text[at:]) + pieces.finish()
        assert b"planted" not in shown.lower(), at
        assert b"***" in shown
    pieces = MaskedPieces(known)
    assert b"planted" not in (b"".join(pieces.feed(text[at : at + 1]) for at in range(len(text))) + pieces.finish())


@pytest.mark.parametrize("filling", [b"x", b"word "])
def test_a_secret_in_a_line_that_is_too_long_to_be_held_back_is_masked(filling: bytes) -> None:
    known = ("planted-value-7",)
    text = filling * (100_000 // len(filling)) + b" planted-value-7 HF_TOKEN=planted-1 end\n"
    for at in range(len(text) - 45, len(text)):
        pieces = MaskedPieces(known)
        shown = pieces.feed(text[:at]) + pieces.feed(text[at:]) + pieces.finish()
        assert b"planted" not in shown, at
        assert b"value" not in shown, at
        assert shown.endswith(b" HF_TOKEN=*** end\n")


@pytest.mark.parametrize(
    "text",
    [b"alone planted-value-7 end\n", b"a HF_TOKEN=planted-value-1 end\n", b"ghp_Planted0123456789abcdefABCDEF end\n"],
)
def test_a_secret_that_two_pieces_of_a_long_line_share_is_masked_in_the_second(text: bytes) -> None:
    for at in range(1, len(text) - 5):
        shown = masked_line(text[at:], text[:at], ("planted-value-7",)).lower()
        assert b"nted" not in shown, at
        assert b"value-" not in shown, at
        assert shown.endswith(b" end\n"[-len(text[at:]) :])


def test_a_value_is_masked_on_the_line_behind_its_name() -> None:
    assert masked_line(b"  value: abc\n", b"x\n- name: HF_TOKEN\n") == b"  value: ***\n"
    assert masked_line(b"  value: abc\n", b"- name: HF_TOKEN\n- name: A\n") == b"  value: abc\n"


def test_a_line_that_ends_within_a_secret_so_far_does_not_show_its_beginning() -> None:
    assert masked_line(b"alone planted-va", b"", ("planted-value-7",)) == b"alone **********"
    assert masked_line(b"alone pla", b"", ("planted-value-7",)) == b"alone pla"
