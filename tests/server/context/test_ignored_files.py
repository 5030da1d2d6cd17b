"""Ignore files mean what they mean to git."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mercury_lsp.context.workspace import ignored, is_secret
from mercury_lsp.context.workspace.git import MAX_RULES, parse_ignore_file
from mercury_lsp.context.workspace.ignored import IgnoreRules
from tests.support.editor import Editor, script
from tests.support.ignore_trees import Tree, differences, planted_tree

TREES = int(os.environ.get("MERCURY_IGNORE_TREES", "40"))
"""Random trees compared with git; `make ignored` compares 1,000."""

SECRET_NAMES = """
.env .env.local .env.production prod.env app.env.example .envrc .flaskenv server.pem server.key tls.crt ca.cer
api.p8 id.p12 id.pfx release.jks debug.keystore my.truststore putty.ppk backup.gpg key.age office.ovpn vault.kdbx
old.kdb login.keychain id_ed25519.pub id_rsa id_rsa.bak id_dsa id_ecdsa id_ed25519 deploy_rsa deploy_ed25519 master.key
private_key.json privatekey.txt credentials credentials.json Credentials.yml aws-credentials.json
client_secret_12.json service-account-prod.json service_account.json application_default_credentials.json
app-firebase-adminsdk-x1.json google-services.json auth.json api.token token.json db.secret app.secrets
secrets.yaml secrets.py secret.json secrets-prod.yml db-secret.yaml passwords.txt passwd shadow .htpasswd
prod.htpasswd .pgpass .my.cnf .mylogin.cnf .netrc _netrc .git-credentials .npmrc .yarnrc .pypirc pip.conf
.dockercfg .dockerconfigjson .boto .s3cfg .tugboat .muttrc .esmtprc .msmtprc .vault-token .vault_pass .terraformrc
prod.tfvars prod.tfvars.json terraform.tfstate terraform.tfstate.backup kubeconfig.yaml .ftpconfig
.remote-sync.json sftp-config.json .smbcredentials wp-config.php LocalSettings.php filezilla.xml recentservers.xml
heroku.json robomongo.json dbeaver-data-sources.xml WebServers.xml knife.rb database.yml omniauth.rb
appsettings.json appsettings.Production.json local.settings.json web.config site.publishsettings NuGet.Config
docker-compose.override.yml keystore.properties logins.json key4.db dump.sqlite3 users.db old.mdb dump.sqldump
capture.pcap config.bak config.old main.orig .bash_history .mysql_history .psql_history
""".split()  # noqa: SIM905

SECRET_PATHS = """
/h/.aws/config /h/.SSH/config /h/.kube/config /h/.docker/config.json /h/.gcp/a.json /h/.azure/x /h/.gnupg/x
/h/.gpg/x /h/.config/.private/a /h/.secrets/a.yaml /h/.mozilla/firefox/x /h/.purple/x
""".split()  # noqa: SIM905

ORDINARY_NAMES = """
environment.py env.py keys.py secretary.py monkey.js tokens.py password.py passwords.py passwd.c credential.py
config.json config.yml settings.json settings.py private_key.go keyring.py kubeconfig.go secrets-manager.ts
certificate.rs history.py token.go auth.py auth.ts .bashrc main.py
""".split()  # noqa: SIM905

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def ignored_by_us(tree: Tree) -> set[str]:
    rules = IgnoreRules(tree.root.as_posix())
    return {path for path in tree.files if not rules.allows(f"{tree.root.as_posix()}/{path}")}


@needs_git
@pytest.mark.parametrize("first", range(0, TREES, 20))
def test_git_ignores_the_same_files(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for seed in range(first, min(first + 20, TREES)):
        tree = planted_tree(tmp_path / str(seed), seed)
        for name in ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_NOSYSTEM"):
            monkeypatch.setenv(name, tree.environment[name])
        assert list(differences(tree, ignored_by_us(tree))) == [], f"seed {seed}"


@pytest.mark.parametrize("name", [*SECRET_NAMES, *SECRET_PATHS])
def test_files_of_secrets_are_known_by_name_and_folder(name: str):
    assert is_secret(Path(name))
    assert name.startswith("/") or not IgnoreRules("/w").allows(f"/w/{name}")


@pytest.mark.parametrize("name", ORDINARY_NAMES)
def test_ordinary_files_are_not_taken_for_files_of_secrets(name: str):
    assert not is_secret(Path("/home/secrets/project") / name)
    assert IgnoreRules("/home/secrets").allows(f"/home/secrets/{name}")


@pytest.mark.parametrize("folder", ["secrets", "certs", "Certificates"])
def test_folders_of_secrets_in_the_workspace_are_not_entered(folder: str):
    assert not IgnoreRules("/home/secrets").allows(f"/home/secrets/{folder}/a.py")


def test_an_ignore_file_that_is_a_link_is_not_read(tmp_path: Path):
    (tmp_path / "patterns").write_text("a.py\n")
    (tmp_path / ".gitignore").symlink_to(tmp_path / "patterns")
    assert IgnoreRules(tmp_path.as_posix()).allows(f"{tmp_path.as_posix()}/a.py")


@needs_git
def test_a_tracked_file_that_a_pattern_names_counts_as_ignored(tmp_path: Path):
    (tmp_path / "tracked.py").touch()
    for words in (["init", "-q"], ["add", "tracked.py"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    (tmp_path / ".gitignore").write_text("tracked.py\n")
    assert not IgnoreRules(tmp_path.as_posix()).allows(f"{tmp_path.as_posix()}/tracked.py")


def test_the_condition_of_an_include_is_taken_to_hold(tmp_path: Path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / ".git" / "config").write_text('[includeIf "gitdir:/nowhere/"]\n\tpath = more\n')
    (tmp_path / ".git" / "more").write_text(f"[core]\n\texcludesFile = {tmp_path.as_posix()}/excluded\n")
    (tmp_path / "excluded").write_text("hidden.py\n")
    rules = IgnoreRules(tmp_path.as_posix())
    assert not rules.allows(f"{tmp_path.as_posix()}/hidden.py") and rules.allows(f"{tmp_path.as_posix()}/shown.py")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (b"*a" * 100 + b"b", b"a" * 255),
        (b"/x" + b"*a" * 16 + b"b", b"x" + b"a" * 255),
        (b"**/" * 500 + b"b", b"a/" * 500 + b"a"),
        (b"a/**/" * 100 + b"b", b"a/" * 500 + b"a"),
        (b"**/*a*a*a/" * 100 + b"b", b"aaaaaa/" * 300 + b"a"),
    ],
    ids=["name", "path", "folders", "folders between", "all"],
)
def test_a_pattern_that_could_fit_in_countless_ways_is_tried_in_few(pattern: bytes, path: bytes):
    [found] = parse_ignore_file(pattern, False)
    assert not found.matches(path, is_folder=False)
    assert found.matches(path[:-1] + b"b", is_folder=False)


def test_below_an_ignore_file_that_cannot_be_read_whole_nothing_is_shown(tmp_path: Path):
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "sub" / ".gitignore").write_text("".join(f"{number}\n" for number in range(MAX_RULES + 1)))
    rules, root = IgnoreRules(tmp_path.as_posix()), tmp_path.as_posix()
    assert [rules.allows(f"{root}/{name}") for name in ("a.py", "sub/a.py", "sub/deep/a.py")] == [True, False, False]
    (tmp_path / "sub" / ".gitignore").write_text("".join(f"{number}\n" for number in range(MAX_RULES)))
    rules = IgnoreRules(root)
    assert [rules.allows(f"{root}/sub/{name}") for name in ("1", "a.py")] == [False, True]


def test_all_rules_of_a_workspace_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ignored, "MAX_WORKSPACE_RULES", 5)
    for folder in "abc":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / ".gitignore").write_text("x\ny\n")
    rules = IgnoreRules(tmp_path.as_posix())
    assert [rules.allows_folder(f"{tmp_path.as_posix()}/{folder}") for folder in "abc"] == [True, True, False]


@pytest.mark.parametrize(("root", "file"), [("/", "/work/a.py"), ("C:/", "C:/work/a.py"), ("//h/s/", "//h/s/a/a.py")])
def test_the_root_of_a_file_system_may_be_the_workspace(root: str, file: str):
    rules = IgnoreRules(root)
    assert rules.allows(file) and rules.allows_folder(file.rpartition("/")[0])
    assert not rules.allows(file.replace("a.py", ".env"))


def test_in_a_file_that_is_merely_ignored_suggestions_work(tmp_path: Path):
    (tmp_path / ".gitignore").write_text("made.py\n")
    with Editor() as editor:
        editor.initialize(None, {}, workspaceFolders=[{"uri": tmp_path.as_uri(), "name": "work"}])
        uri = (tmp_path / "made.py").as_uri()
        editor.open(uri, script(text="1 + 2") + "x = ")
        [item] = editor.items(uri, 1, 4)
        assert item["insertText"].endswith("1 + 2")
