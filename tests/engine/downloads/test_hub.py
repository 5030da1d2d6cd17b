"""The Hugging Face Hub, played by a local server: the real one cannot be reached where these tests run."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from mercury_engine.downloads import hub
from mercury_engine.downloads.catalogue import KNOWN
from mercury_engine.downloads.hub import RemoteFile
from mercury_engine.errors import DownloadCorrupt, DownloadError

from tests.support.fake_hub import COMMIT, FakeHub, serving

NAME = "owner/tiny"
WEIGHTS = bytes(range(256)) * 400


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with serving(FakeHub(NAME, {"config.json": b"{}", "model.safetensors": WEIGHTS})) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda seconds: None)
        monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 500)
        yield served


def test_a_repository_is_described_with_its_licence_sizes_and_hashes(fake: FakeHub):
    found = hub.describe(NAME)
    assert (found.commit, found.licence) == (COMMIT, "mit")
    sha256 = hashlib.sha256(WEIGHTS).hexdigest()
    assert found.files == (RemoteFile("config.json", 2, None), RemoteFile("model.safetensors", len(WEIGHTS), sha256))


def test_a_dropped_connection_is_continued_where_it_broke(fake: FakeHub, tmp_path: Path):
    fake.cut_at = 1000
    hub.fetch(NAME, "model.safetensors", COMMIT, tmp_path / "file", len(WEIGHTS))
    assert (tmp_path / "file").read_bytes() == WEIGHTS
    assert [start for _, start in fake.sent] == [0, 1000]


def test_a_file_shorter_than_listed_is_a_clear_error(fake: FakeHub, tmp_path: Path):
    fake.altered["model.safetensors"] = WEIGHTS[:-1]
    with pytest.raises(DownloadError, match="cut short"):
        hub.fetch(NAME, "model.safetensors", COMMIT, tmp_path / "file", len(WEIGHTS))
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize(("code", "said"), [("GatedRepo", "accept its terms"), ("RepoNotFound", "there is no model")])
def test_a_refusal_says_what_to_do(fake: FakeHub, code: str, said: str):
    fake.refusal = code
    with pytest.raises(DownloadError, match=f"{said}.*HF_TOKEN"):
        hub.describe(NAME)


def test_without_a_network_the_error_says_that_a_retry_continues(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda seconds: None)
    with pytest.raises(DownloadError, match="check the network"):
        hub.describe(NAME)
    with pytest.raises(DownloadError, match="continues where it stopped"):
        hub.fetch(NAME, "model.safetensors", COMMIT, tmp_path / "file", len(WEIGHTS))


def test_the_token_comes_from_the_environment_only(fake: FakeHub, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    (tmp_path / "token").write_text("from a file")
    hub.describe(NAME)
    hub.fetch(NAME, "config.json", COMMIT, tmp_path / "one", 2)
    assert fake.tokens == {None}
    monkeypatch.setenv("HF_TOKEN", "mine")
    hub.describe(NAME)
    hub.fetch(NAME, "config.json", COMMIT, tmp_path / "two", 2)
    assert fake.tokens == {None, "Bearer mine"}


def test_a_known_file_that_the_hub_has_changed_is_not_downloaded(fake: FakeHub, tmp_path: Path):
    known, sha256 = KNOWN["qwen2.5-coder-0.5b"], hashlib.sha256(WEIGHTS).hexdigest()
    same = replace(known, repository=NAME, path="model.safetensors", sha256=sha256)
    hub.fetch_known(same, tmp_path / "whole")
    assert (tmp_path / "whole").read_bytes() == WEIGHTS
    with pytest.raises(DownloadCorrupt, match="upgrade mercury-lsp"):
        hub.fetch_known(replace(same, sha256="0" * 64), tmp_path / "other")
    assert len(fake.sent) == 1
