"""Commands with a remote engine in the environment: they ask it, as editors do, and say where the text goes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from mercury_engine.api import Fill, SlotView

from mercury_lsp.cli import main
from mercury_lsp.commands import doctor
from mercury_lsp.engine_host.loading import load_engine
from mercury_lsp.engine_host.remote import wire
from mercury_lsp.plain_data import plain
from mercury_lsp.settings import Settings
from tests.support.edit_server import COMPLETIONS, completes, serving
from tests.support.fake_engine import FakeEngine
from tests.support.fake_remote import FakeRemote, says


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRemote]:
    about = plain(wire.About("elsewhere", backend="its kernels"))
    answer = {"answer": plain(Fill("1 + 1", 0.9, 2, 0.0, True))}
    step = {"step": plain((SlotView("1", "committed", 0.9),))}
    with FakeRemote({f"GET {wire.PATH}": says(about), f"POST {wire.PATH}": says(step, answer)}) as made:
        monkeypatch.setenv("MERCURY_ENGINE", made.url)
        yield made


def source(tmp_path: Path, text: str = "x = \n") -> str:
    path = tmp_path / "sample.py"
    path.write_text(text)
    return f"{path}:1:5"


def test_complete_and_watch_ask_the_engine_that_editors_ask(remote: FakeRemote, tmp_path: Path, capsys):
    assert main(["complete", source(tmp_path), "--json"]) == 0
    said = capsys.readouterr()
    answer = json.loads(said.out)
    assert (answer["text"], answer["model"], answer["device"]) == ("1 + 1", "elsewhere", f"remote at {remote.url}")
    assert said.err == f"{remote.url} answers\n"
    assert main(["watch", source(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["  0 1", "an editor shows 1 + 1"]


def test_doctor_asks_what_is_there_and_checks_the_local_model_too(remote: FakeRemote):
    found = {each.name: each for each in doctor.findings(Settings(engine=remote.url), lambda settings: FakeEngine())}
    assert found["engine"].value.startswith(f"{remote.url} answers with elsewhere by its kernels; editors")
    assert found["engine"].fix is None and "fake" in found["model"].value
    assert remote.posted(wire.PATH) == []
    remote.close()
    found = {each.name: each for each in doctor.findings(Settings(engine=remote.url), lambda settings: FakeEngine())}
    assert found["engine"].value == "does not work" and f"start the server at {remote.url}" in str(found["engine"].fix)
    assert found["fill"].fix is None


def test_doctor_asks_the_server_for_edits_for_a_harmless_one(monkeypatch):
    new = 'def greet(name):\n    return "hello, " + name\n'
    with serving(completes(new)) as remote:
        monkeypatch.setenv("MERCURY_EDIT_ENGINE", f"{remote.url}#zeta-2")

        def load(settings: Settings):
            return load_engine(settings) if settings.model else FakeEngine()

        found = {each.name: each for each in doctor.findings(Settings(), load)}
        assert found["edit server"].fix is None
        assert f"wrote {new!r}" in found["edit server"].value and "format of zeta-2" in found["edit server"].value
        assert "def greet(name)" in remote.posted(COMPLETIONS)[0]["prompt"]
        remote.close()
        found = {each.name: each for each in doctor.findings(Settings(), load)}
        assert found["edit server"].value == "does not work"
        assert f"start the server at {remote.url}" in str(found["edit server"].fix)


@pytest.mark.parametrize("command", ["complete", "doctor"])
def test_a_url_that_is_none_is_one_clear_line(command: str, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("MERCURY_ENGINE", "team.example")
    assert main([command, *([source(tmp_path)] if command == "complete" else [])]) == 2
    assert "mercury.engine: 'team.example' is not an http or https URL" in capsys.readouterr().err
