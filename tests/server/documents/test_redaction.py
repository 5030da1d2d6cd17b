import socket
import sys

import pytest
from lsprotocol import types

from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.documents.document import Document
from mercury_lsp.documents.redaction import around_cursor, is_secret_line, without_secrets
from mercury_lsp.documents.secret_text.blocks import secret_lines
from mercury_lsp.documents.secret_text.values import password_look

KEY = 'token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"\n'


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("python", 'password = "hunter2"'),
        ("python", 'password = "hunter2secret"'),
        ("python", "AWS = 'AKIAIOSFODNN7XAMPLQ'"),
        ("python", KEY),
        ("python", 'url = "https://user:pa55word@host/path"'),
        ("python", "-----BEGIN RSA PRIVATE KEY-----"),
        ("python", "MIIEpAIBAAKCAQEA7bq1fW0Xn0Zb0j5yM6mTt3fJ1Yg2k8bQx1n5v7c9d0e1f2g3"),
        ("go", 'password := "hunter2"'),
        ("rust", 'let password = "hunter22";'),
        ("shellscript", "export DB_PASSWORD=abcde123"),
        ("yaml", "password: hunter2"),
    ],
)
def test_secrets_are_found(language: str, line: str):
    assert is_secret_line(line, language)


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("python", 'secret = os.environ["SECRET"]'),
        ("python", "self.password = password"),
        ("python", "def login(self, user: str, password: str) -> Session:"),
        ("go", "password = getPassword()"),
        ("yaml", "password: ${PASSWORD}"),
        ("python", "x = 1"),
        ("python", ""),
    ],
)
def test_code_that_only_mentions_secrets_is_kept(language: str, line: str):
    assert not is_secret_line(line, language)


SURE = ["Pebble5351!", "#w@lnut21", "p@ssw0rd1", "q7Lw!fj2Kd"]
MIXED = ["Tr0ub4dor&3", "@timb3r02", "tim7Velvet", "fal2Bramble", "avaTx7zOTLpO", "hxj4s-vs6zy"]
NUMBERED = ["HarvestWillow41", "harvest_raven20", "lantern.walnut78", "thistle88"]


@pytest.mark.parametrize(
    ("word", "look"), [*((each, 3) for each in SURE), *((each, 2) for each in MIXED), *((each, 1) for each in NUMBERED)]
)
def test_passwords_are_known_by_their_look(word: str, look: int):
    assert password_look(word) == look


NO_PASSWORDS = """
setup-python@v5 utf8mb4_bin org.freedesktop.network1 lodash@4.17.21 user@host1 sha256sum item#12345 $USER2345
2026-11-29T10:00 9f3c1e7ab4d2085c %d-items-1 v1.2.3-beta4 out_pin_1 base64Encode x86_64-linux Gizmo
""".split()  # noqa: SIM905


@pytest.mark.parametrize("word", NO_PASSWORDS)
def test_names_versions_and_hashes_are_no_passwords_by_their_look(word: str):
    assert password_look(word) == 0


@pytest.mark.parametrize(
    ("language", "text", "secret"),
    [
        ("plaintext", "Here are the credentials:\n\n  bob@x.example\n  HarvestWillow41\n", "Harvest"),
        ("log", "[10:02] bob: what's the root pw?\n[10:03] amy: tim7Velvet\n", "tim7"),
        ("plaintext", "GitHub recovery codes\nhxj4s-vs6zy\nk2mqp-9dx3t\n", "k2mqp"),
        ("plaintext", "# client server secret ip\noffice\t*\ttulipgarden\t*\n", "tulip"),
        ("plaintext", 'office * "tulipgarden" *\n', "tulip"),
        ("plaintext", "37415e17d91250fcacd5aad82a24bd2e909b24f68c7d94901712ab34cd56ef78\n", "3741"),
        ("sql", "password: velvetgarnet\n", "velvet"),
        ("python", 'hmac.new(b"timberwillow", body, "sha256")\n', "timber"),
        ("python", 'TOKEN = "3f2b8c1e-7d4a-4e9b-a1c6-5d8e2f7b9a04"\n', "3f2b"),
        ("go", 'jwtKey := []byte("sycamoretundra")\n', "sycamore"),
        ("php", "Hash::make('rosewoodcobalt');\n", "rosewood"),
        ("javascript", "// staging login bob/Garnet6761!\n", "Garnet"),
        ("scala", 'Map("user" -> "a", "password" -> "quartzes")\n', "quartz"),
        ("yaml", "password: ${MAIL:-emb9Mosaic}\n", "emb9"),
        ("shellscript", "nmcli dev wifi connect Attic password mosaicbishop\n", "mosaic"),
        ("markdown", "- default admin password changed to `mosaicsycamore`\n", "mosaic"),
        ("toml", 'activation_code = "H10DV-V8B8K-VOBSJ-I52TM"\n', "V8B8K"),
        ("plaintext", "bob:PjC-r05Axd\namy:wlx7qCp3OL\n", "PjC"),
        ("plaintext", "Netflix\nbob@x.example\nman3Clover\n", "man3"),
        ("python", "get(f'https://x.example/a?appid=ae3463ab8de06ebcfd7a4ddd069b08c0')\n", "ae3463"),
        ("python", "Client(api_key=('id', '8RmSVdNl2NKGi4idaYZk2aLzkxEqIpPhnJeAE7bI'))\n", "8RmS"),
        ("html", "<b>jdoe</b> VPN: <code>fal4Marble</code>\n", "fal4"),
        ("r", "GH_TOKEN=abc7Xy2kQ9mL4pR8\n", "abc7"),
    ],
)
def test_a_value_counts_by_its_look_and_what_speaks_of_an_access_near_it(language: str, text: str, secret: str):
    assert secret not in without_secrets(text, language)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("yaml", "    key: password\n- name: MODE\n  value: production9\n"),
        ("yaml", "      - uses: actions/create-github-app-token@v3\n      - uses: actions/setup-python@v5\n"),
        ("php", "'password' => 'required|string|min:8|confirmed',\n"),
        ("python", 'from_pretrained("Qwen/Qwen3-Next-80B-A3B-Instruct").tokenizer\n'),
        ("python", '__all__ = ["OAuth2Client", "HiggsAudioV2TokenizerConfig"]\n'),
        ("properties", "# specifies a file-based authentication that uses the password file.\n"),
        ("shellscript", "# String to pass to linker to pick up the library\n"),
        ("conf", '<allow own="org.freedesktop.systemd1"/>\n'),
        ("javascript", "url = 'https://x.example/a.js?v=ae3463ab8de06ebcfd7a4ddd069b08c0'\n"),
        ("python", 'name = "AWS::KMS::Key": "af26a71fe21eb480"\n'),
        ("sql", "-- note: nothing\nSELECT token FROM a;\n"),
    ],
)
def test_text_beside_words_of_access_is_kept(language: str, text: str):
    assert without_secrets(text, language) == text


@pytest.mark.parametrize("at", [len(KEY), len(KEY) + 14, 2 * len(KEY) - 1])
def test_the_cursors_line_stays(at: int):
    before, after, is_secret = around_cursor([KEY * 3 + "x = 1\n"], 0, at, "python")
    assert before + after == KEY + "x = 1\n" and before == KEY[: at - len(KEY)] and is_secret


def test_no_block_of_a_context_contains_a_secret():
    text = "".join(KEY if number % 7 == 3 else f"value_{number} = {number}\n" for number in range(600))
    document = Document("file:///a.py", "python", 1, text)
    for offset in range(0, len(text), 997):
        start, end = document.snapshot().source.line_bounds(offset)
        context = ContextBuilder().build(document.snapshot(), offset, None)
        shown = "".join((*context.far, context.near, *context.suffix))
        assert ("ghp_" in shown) <= context.on_secret == (text[start:end] + "\n" == KEY)


def test_checking_lines_opens_no_connection(monkeypatch: pytest.MonkeyPatch):
    events: list[str] = []
    sys.addaudithook(lambda event, _: events.append(event) if event.startswith("socket.") else None)
    monkeypatch.setattr(socket, "create_connection", None)
    assert is_secret_line('slack = "xoxb-123456789012-1234567890123-abcdefghijklmnopqrstuvwx"', "python")
    assert events == []


@pytest.mark.parametrize("lines", [300, 6000])
def test_a_key_has_one_text_examined_however_long_the_document_is(lines: int):
    named = ["db_password_{n} = get('PASSWORD')\n", *["value_{n} = compute({n}, name='x')\n"] * 8]
    document = Document("file:///a.py", "python", 1, "".join(named[n % 9].format(n=n) for n in range(lines)))
    builder, keys = ContextBuilder(), 40
    builder.build(document.snapshot(), document.snapshot().source.offset_at(lines // 2, 0), None)
    texts, examined = secret_lines.cache_info().misses, is_secret_line.cache_info().misses
    for key in range(keys):
        at = types.Position(lines // 2, key)
        typed = types.TextDocumentContentChangePartial(text="abcdefghij"[key % 10], range=types.Range(at, at))
        document.apply([typed], key + 2)
        builder.build(document.snapshot(), document.snapshot().source.offset_at(lines // 2, key + 1), None)
    assert secret_lines.cache_info().misses - texts <= keys
    assert is_secret_line.cache_info().misses - examined <= keys


TOKEN = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.mark.parametrize("filling", range(480, 520, 4))
@pytest.mark.parametrize("lines", [1, 4])
def test_a_secret_across_two_chunks_is_removed(filling: int, lines: int):
    long = f"data = ['{'x' * filling}', '{TOKEN}', '{'y' * 700}']\n"
    text = "a = 1\n" * lines + long + "b = 2\n" * 300
    snapshot = Document("file:///a.py", "python", 1, text).snapshot()
    for at in range(0, len(text), 97):
        context = ContextBuilder().build(snapshot, at, None)
        if snapshot.source.line_of(at) != lines:
            read = "".join((*context.far, context.near, *context.suffix))
            assert not any(TOKEN[start : start + 12] in read for start in range(len(TOKEN) - 12))
            assert context.near.endswith(text[max(snapshot.source.line_bounds(at)[0], at - 20) : at])
