"""None of the secrets that the project plants reaches the model, and ordinary lines do."""

import random
import string
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "benchmarks"))

from on_secrets import corpus as planting  # noqa: E402
from on_secrets import lists, ordinary, paths  # noqa: E402

from mercury_lsp.documents.chunked_text import ChunkedText  # noqa: E402
from mercury_lsp.documents.redaction import (  # noqa: E402
    chunk_without_secrets,
    edit_shows_secret,
    is_secret_line,
    shows_secret,
    without_secrets,
)
from mercury_lsp.documents.secret_text.blocks import secret_lines  # noqa: E402
from mercury_lsp.documents.secret_text.lines import issuer_pattern  # noqa: E402

EACH = list(planting.corpus())


def shown(text: str, language: str) -> str:
    chunks = ChunkedText.of(text).chunks
    return "".join(chunk_without_secrets(chunks, number, language) for number in range(len(chunks)))


@pytest.mark.parametrize("language", planting.LANGUAGES)
def test_no_planted_secret_is_left_in_the_text_around_it(language: str):
    around = "first = 1\nsecond = 2\n"
    left = []
    for each in (each for each in EACH if each.language == language):
        text = shown(around + each.text + "\n" + around, language)
        left += [(each.name, part) for part in each.parts if part in text]
        assert text.startswith("first = 1\n") and text.endswith("second = 2\n")
    assert left == []


@pytest.mark.parametrize("seed", [1, 2])
def test_other_characters_are_not_left_either(seed: int):
    around = "first = 1\n"
    found = [each for number, each in enumerate(planting.corpus(seed=seed)) if number % 7 == seed]
    texts = ((each, shown(around + each.text + "\n" + around, each.language)) for each in found)
    assert [each.name for each, text in texts if any(part in text for part in each.parts)] == []


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("indent", ["", "        ", "\t"])
def test_line_ends_and_indentation_do_not_matter(line_end: str, indent: str):
    left = []
    for each in (each for number, each in enumerate(EACH) if number % 11 == 3):
        lines = ["first = 1", *(indent + line for line in each.text.split("\n")), "last = 1", ""]
        text = shown(line_end.join(lines), each.language)
        left += [each.name for part in each.parts if part in text]
    assert left == []


@pytest.mark.parametrize("part", range(8))
def test_no_planted_secret_is_in_a_prompt_a_lookup_a_snippet_or_a_next_edit(part: int):
    """Every format in one of the languages; `benchmarks/planted_secrets.py` tries all of them."""
    chosen = [each for number, each in enumerate(EACH) if number % (planting.formats() + 1) % 8 == part]
    chosen = [each for number, each in enumerate(chosen) if number % 13 == part % 13]
    found = {each.name: ways for each in chosen if any((ways := paths.leaks(each)).values())}
    assert found == {} and len(chosen) > 50


@pytest.mark.parametrize("at", [0, 400, 500, 1100])
def test_a_secret_is_hidden_wherever_chunks_end(at: int):
    filling = "value = 1\n" * (at // 10)
    for each in (each for each in EACH if each.kind in ("block", "next line", "joined") and each.language == "python"):
        text = shown(f"{filling}{each.text}\n{filling}", "python")
        assert not any(part in text for part in each.parts), each.name


def test_no_file_of_the_corpus_holds_what_looks_like_a_token():
    folder = ROOT / "benchmarks" / "on_secrets"
    for path in (*sorted(folder.glob("*.txt")), *folder.glob("*.py"), folder / "known_formats.json"):
        for line in path.read_text("utf-8").splitlines():
            assert not issuer_pattern().search(line), (path.name, line)


def test_of_the_ordinary_code_of_this_repository_at_most_two_characters_in_a_thousand_are_hidden():
    found = [ordinary.measured(name, files) for name, files in ordinary.packages([ROOT / "mercury_lsp"])]
    assert sum(each.chars for each in found) > 500_000
    assert ordinary.share(found) <= 0.002


def test_a_listed_format_tells_which_runs_of_characters_must_not_be_shown():
    made = lists.Format("a", "db.ini", ("dosini",), "user = abcd\npassword = «abcdefg»\n", "").planted("dosini")
    assert made.text == "user = abcd\npassword = abcdefg\n"
    assert made.parts == ("bcde", "cdef", "defg")  # `abcd` is shown anyway


KNOWN = list(lists.formats("known"))


@pytest.mark.parametrize("each", KNOWN, ids=lambda each: f"{each.path}-{each.about}".replace(" ", "_"))
def test_no_file_of_the_known_list_shows_its_secret_in_any_language_that_an_editor_gives_it(each: lists.Format):
    found = {language: paths.leaks(each.planted(language)) for language in each.languages}
    assert {language: ways for language, ways in found.items() if any(ways.values())} == {}


SETTINGS_IDS = """
dosini ini conf cfg config toml properties jproperties systemd desktop gitconfig editorconfig samba
nginx apache plaintext text markdown help dockerfile yaml helm sh bash zsh fish csh make kconfig hcl
terraform nix puppet xml unknown dotenv env tmux ssh-config sshconfig fstab crontab pf
wpa_supplicant rst asciidoc restructuredtext
""".split()  # noqa: SIM905


@pytest.mark.parametrize("language", ["", *SETTINGS_IDS])
@pytest.mark.parametrize(
    "line", ["password = Sonnenblume", "db_pass: hunter2go", "smtp.secret=correct horse battery staple"]
)
def test_values_without_quotes_are_secret_in_every_language_that_is_no_code(line: str, language: str):
    assert is_secret_line(line, language)


@pytest.mark.parametrize(
    "line",
    [
        '<input id="password" type="',
        '<input id="password" type="password" name="password" placeholder="Your password" required>',
        '<label for="password">Password</label>',
        "password = password.encode('utf-8', 'surrogateescape')",
        "b_password = to_bytes(password, encoding='utf-8', errors='strict')",
        "        Otherwise, it will return the first username and password combo that it finds.",
        "    password: SecretStr | None = None",
        "from .oauth2 import OAuth2AuthorizationCodeBearer as OAuth2AuthorizationCodeBearer",
        "'password': config.get(server, 'password'),",
        "return self.password.encode('ascii'), challenge, 'md5'",
        "const passwordField = document.querySelector('#password');",
        "toolDriverName: secretlint,",
        'PASS_KINDS = ("inline", "module", "function")',
        'label: "Enter your password"',
        'password: "Password must have 8 characters"',
        "pwd = getpass.getpass('Password for %s: ' % user)",
        'if os.environ.get("DB_PASSWORD") is None:',
        "token = base64.b64encode(pair).decode('ascii')",
        'alias mpd="multipass shell dev"',
        "'allPass': 'overEvery',",
        'resolved = "607a30d783dfa663caf39e06633721c8d4cfcd7e"',
        "// as in AKIAIOSFODNN7EXAMPLE",
        "# the key stands between -----BEGIN PRIVATE KEY----- ... -----END PRIVATE KEY-----",
        'b"0481068110814081518159810082208280828282a082a8820184048410841284"',
        "# a path like a/../../etc/passwd, or another one",
    ],
)
@pytest.mark.parametrize("language", ["python", "html", "javascript"])
def test_ordinary_code_about_passwords_is_shown(line: str, language: str):
    assert not is_secret_line(line, language)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ('  "token": "Jeton d\'accès",', "json"),
        ('  "newPassword": "Nueva contraseña"', "json"),
        (
            '<string name="login_password">Password</string>\n<string name="password_hint">At least 12 marks</string>',
            "xml",
        ),
        ("login.password=Passwort", "properties"),
        ('key = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ROUNDS)', "python"),
        ('if data.get("new_password1") != data.get("new_password2"):', "python"),
        ('keyring.set_password("field-cli", username, token)', "python"),
        ("accessToken: String!", "graphql"),
        ('password = decrypt("abcdef")', "python"),
        ('passwd = pwd.getpwnam("nobody")', "python"),
        ('if (password.includes("number")) {', "javascript"),
        ("password: &password_of_db", "yaml"),
        ('"AWS::IAM::AccessKey": "62d91b17309e76c8",', "python"),
        ('if pass_arg == "environment":', "python"),
        ('resource "random_password" "master" {', "terraform"),
        ("'passwords' => 'users',", "php"),
        ("'passwords' => [\n    'users' => [", "php"),
        ('resources: ["secrets", "configmaps"]', "yaml"),
        ('<PackageReference Include="Azure.Security.KeyVault.Secrets" Version="4.5.0" />', "xml"),
        ("password: !secret camera_pw", "yaml"),
        ('export DB_PASSWORD="${DB_PASSWORD:?missing}"', "shellscript"),
        ("password: {{ .Values.auth.password | b64enc | quote }}", "yaml"),
        ("keystore.password=${file:/etc/kafka/secrets.properties:keystore.password}", "properties"),
        ("STRIPE_SECRET_KEY=your-stripe-secret-key", "dotenv"),
        ("export DB_PASSWORD=<your password>\ndocker compose up", "markdown"),
        ('public static final String HEADER_API_KEY = "X-Api-Key";', "java"),
        ('public static final String ALGORITHM = "PBKDF2WithHmacSHA256";', "java"),
        ("keys: [1, 2, 3]", "yaml"),
        ("login.error=Benutzername oder Passwort ist falsch.", "properties"),
        ("the user opens new-acl-1 of example-project-1", "plaintext"),
        ('"Arn": "arn:aws:rds:us-east-1:123456789012:db-proxy:prx-0123a01b12345c0ab",', "json"),
        ("- fix: secret rotation (bbe8309511ca63bb945b409ec06e46ae32bf7368)", "markdown"),
        ("jwt-tokens@^4:\n  integrity sha512-zXS1bYjH8vnKD41HYqwWqN5hF7UlTlDNimIX3eninaJlB7a8f4ngBA==", "plaintext"),
    ],
)
def test_labels_references_and_names_are_shown(text: str, language: str):
    assert secret_lines(text, language) == frozenset()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ('  "token": "correct horse battery staple",', "json"),
        ('  "newPassword": "Nueva contra5eña"', "json"),
        ("login.password=Passwort7", "properties"),
        ('keyring.set_password("field-cli", "amy", "swordfish")', "python"),
        ('key = scrypt(b"swordfish", salt, ROUNDS)', "python"),
        ('"passwords": ["swordfish"]', "json"),
        ("password: camera_pw7!", "yaml"),
        ('export DB_PASSWORD="${DB_PASSWORD:-swordfish}"', "shellscript"),
        ("password: {{ password }}swordfish7", "yaml"),
        ('const headerValue = "M93A62jcGNsdF4xgb6JsoWyTZLA8JDPexfiS0mSf-oxRO4KT"', "swift"),
        ("const revenueCatKey = 'appl_pfZr7l81fhKrEIkviGxIkDa3yesy';", "dart"),
        ("openssl enc -aes256 -k copper -in a", "shellscript"),
        ("network_key: [166, 208, 22, 150, 56, 60, 19, 87, 14, 158, 56, 223, 94, 105, 123, 0]", "yaml"),
        ("als buero an, das Kennwort lautet Kaffeekanne77 (mit K)", "plaintext"),
        ("router: log in as admin / purple-otter-78", "plaintext"),
    ],
)
def test_values_beside_such_words_are_hidden(text: str, language: str):
    assert secret_lines(text, language) == frozenset({0})


def test_a_login_form_hides_neither_its_line_nor_the_next():
    form = '<form>\n  <input id="password" type="\n  <button>Log in</button>\n</form>\n'
    assert without_secrets(form, "html") == form


@pytest.mark.parametrize(
    "line",
    [
        'token = response.headers["x-request-id"]',
        'password = getpass.getpass("Password: ")',
        'parser.add_argument("--password", help="the password to log in with")',
        'if key == "Enter":',
        'key = f"{prefix}:{name}"',
        'raise ValueError("the token must not be empty")',
        'type="password"',
        'assert "secret" not in caplog.text',
        'headers["Authorization"] = f"Bearer {token}"',
        'url = f"https://{user}:{password}@{host}"',
        'self.tokenizer = Tokenizer.from_file("tokenizer.json")',
        "def authenticate(self, user: str, password: str | None = None) -> Session:",
        'cache_key = ("attention", layer, head_dim, "float16")',
        '"openTypeOS2WidthClass": dict(type=int),',
        "uses: actions/checkout@v4",
        'password = os.environ["DB_PASSWORD"]',
        "curl -fsSL https://example.com/install.sh | sh -s -- -p /usr/local",
        "    secret: ${{ secrets.DEPLOY_KEY }}",
        "INSERT INTO items (name, price) VALUES ('apple', '12')",
    ],
)
def test_ordinary_lines_are_shown(line: str):
    assert not is_secret_line(line, "python")


def test_rows_of_an_image_are_shown_and_those_of_a_key_are_not():
    key = "q8ZxV2kLr0Tn7Yw4Pc9Mb3Xd5Hs1Jf6Ga/uE+oKi2Bx7NvQ0zRtWmCpLyDhSgUe4\n" * 3
    image = "iVBORw0KGgoAAAANSUhEUgAAAx4AAAAUAQAAAAArMtZoAAAEwElEQVR4nABlAJr/AHVE\n" * 3
    assert without_secrets(key, "python") == "" and without_secrets(image, "python") == image


def test_a_value_counts_with_the_line_above():
    assert not shows_secret('    "swordfish",\n', "python")
    assert shows_secret('    "swordfish",\n', "python", above="password = (\n")


def test_an_edit_counts_with_its_neighbours_before_and_after():
    document = paths.Document("file:///a.py", "python", 1, 'password = (\n    ""\n)\nx = 1\n').snapshot()
    at = document.text.index('""') + 1
    assert edit_shows_secret(document, at, at, "swordfish")
    assert not edit_shows_secret(document, document.length - 2, document.length - 1, "2")


def characters(seed: int, alphabet: str, count: int) -> str:
    """Random characters: no value that looks like a key stands in this file."""
    return "".join(random.Random(seed).choices(alphabet, k=count))


HEX, LETTERS = "0123456789abcdef", string.ascii_letters + string.digits
KEY32, KEY40, MIXED, PASSWORD = characters(1, HEX, 32), characters(2, HEX, 40), characters(3, LETTERS, 40), "kX77pq9Lw"
SEED = "abandon ribbon canyon drift elbow fabric garment harvest ivory jungle kitten ladder"


@pytest.mark.parametrize(
    ("language", "text", "line"),
    [
        *((language, f"GITHUB_PAT={KEY40}\n", 0) for language in ("shellscript", "plaintext", "r", "dotenv")),
        ("yaml", f"ADO_PAT: {KEY40}\n", 0),
        ("json", f'{{"MY_PAT": "{KEY40}"}}\n', 0),
        ("python", f'MY_PAT = "{KEY40}"\n', 0),
        ("r", f'Sys.setenv(CENSUS = "{KEY40}")\n', 0),
        ("rust", f'const API: &str = "{KEY40}";\n', 0),
        ("plaintext", f"{KEY32}\n", 0),
        ("markdown", f"Our agent uses {KEY32} in production.\n", 0),
        ("markdown", f"rotated, now {MIXED}\n", 0),
        ("kotlin", f'val api = Api("https://x.org", "{MIXED}")\n', 0),
        ("shellscript", f'curl -H "X-Api: {MIXED}" https://x.org\n', 0),
        ("yaml", f'test: ["CMD", "mysqladmin", "ping", "-uroot", "-p{PASSWORD}"]\n', 0),
        ("terraform", f'resource "aws_ssm_parameter" "x" {{\n  type = "SecureString"\n  value = "{PASSWORD}"\n}}\n', 2),
        ("yaml", f"kind: Secret\nmetadata:\n  name: app\ndata:\n  main: {characters(4, LETTERS, 12)}=\n", 4),
        ("sql", f"CREATE LOGIN sa WITH PASSWORD = N'{PASSWORD}';\n", 0),
        ("sql", f"GRANT ALL ON *.* TO x IDENTIFIED BY {PASSWORD};\n", 0),
        ("csv", f"name,password\nbob,{PASSWORD}\n\neve,{PASSWORD}\n", 3),
        ("markdown", f"The database password changed on Monday to {PASSWORD}\n", 0),
        ("plaintext", "wifi guest: Zebra94Moon\n", 0),
        ("ruby", f"Net::FTP.open('host', 'user', '{PASSWORD}')\n", 0),
        ("shellscript", f"kubectl create secret generic x --from-literal=db={PASSWORD}\n", 0),
        ("plaintext", f"{SEED}\n", 0),
        ("typescript", f'const words = "{SEED}";\n', 0),
    ],
)
def test_a_value_is_known_by_itself_and_by_what_is_around_it(language: str, text: str, line: int):
    assert line in secret_lines(text, language)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("php", "return ['password' => 'required|string|min:8|confirmed'];\n"),
        (
            "yaml",
            "- name: A_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      key: y\n- name: MODE\n  value: production\n",
        ),
        ("yaml", "securitySchemes:\n  key:\n    type: apiKey\n    in: header\n"),
        ("python", 'client.post("/login", json={"user": "bob", "password": "wrong"})\n'),
        ("python", "# the user didn't pass the argument\n"),
        ("python", f'EXPECTED_DIGEST = "{characters(5, HEX, 64)}"\n'),
        ("toml", f'content-hash = "{characters(5, HEX, 64)}"\n'),
        ("dockerfile", f"FROM python:3.12@sha256:{characters(5, HEX, 64)}\n"),
        ("shellscript", f"git checkout {KEY40}\n"),
        ("plaintext", f"{KEY32}  archive.tgz\n"),
        ("markdown", f"- parser ([`{KEY40[:7]}`](https://github.com/x/y/commit/{KEY40}))\n"),
        ("json", f'"gitHead": "{KEY40}"\n'),
        ("json", '"id": "3f4e170b-df5d-3ff5-cba6-57b892043052"\n'),
        ("json", '"minipass": "^7.1.3",\n'),
        ("javascript", "// Prints: 68656c6c6f20776f726c64206f6620636f6465\n"),
        ("python", "flags = AddIpv6NetworkTierArgs(OAuth2WidthClass, utf8mb4_unicode_520_ci)\n"),
        ("yaml", "resources.secrets:\n  supported_apis:\n  - v1\n"),
    ],
)
def test_hashes_names_and_rules_are_no_secrets(language: str, text: str):
    assert secret_lines(text, language) == frozenset()
