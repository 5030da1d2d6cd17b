"""What is installed is pinned with hashes, and the weights come with their licence and a bill of materials."""

import hashlib
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

WEIGHTS = ROOT / "engine" / "mercury_engine" / "assets" / "mercury-135m"


def canonical(name: str) -> str:
    """The name of a distribution as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    """Versions by name."""
    return {canonical(name): version for name, version in re.findall(r"^([\w.-]+)==([\w.]+)", text, re.M)}


LOCK = (ROOT / "requirements.lock").read_text()
"""`make lock` writes it, and the other one."""

DEVELOPERS_LOCK = (ROOT / "requirements-dev.lock").read_text()
"""All but torch and what only torch brings: its files differ between indexes, for CPUs and for CUDA."""


def test_the_lock_has_every_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {canonical(re.split(r"[<>=; ]", dependency)[0]) for dependency in project["dependencies"]}
    assert names <= set(pins(LOCK)) and names <= set(pins(DEVELOPERS_LOCK))


@pytest.mark.parametrize("lock", [LOCK, DEVELOPERS_LOCK], ids=["users", "developers"])
def test_the_lock_and_the_constraints_agree(lock: str):
    constraints = pins((ROOT / "constraints.txt").read_text())
    locked = pins(lock)
    assert {name for name in locked.keys() & constraints.keys() if locked[name] != constraints[name]} == set()


@pytest.mark.parametrize("lock", [LOCK, DEVELOPERS_LOCK], ids=["users", "developers"])
def test_every_locked_package_has_hashes(lock: str):
    entries = re.split(r"\n(?=\S)", lock.strip())
    assert len(entries) == len(pins(lock))
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_trying_a_clone_installs_what_users_install_and_testing_it_the_rest():
    def installed(target: str) -> str:
        return subprocess.run(["make", "-nB", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    light, rest = "-r requirements.lock", ("-r requirements-dev.lock", "mercury-lsp[dev]")
    tried, tested = installed("try"), installed("test")
    assert light in tried and not any(each in tried for each in rest)
    assert all(each in tested for each in (light, *rest))


def test_every_action_of_continuous_integration_is_pinned_by_its_commit():
    texts = [path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml")]
    used = [action for text in texts for action in re.findall(r"uses: (\S+)", text)]
    assert used and [action for action in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)] == []


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE"])
def test_the_weights_have_their_licence_beside_them(name: str):
    assert (WEIGHTS / name).read_text().strip()


def test_the_bill_of_materials_names_every_file_of_the_weights():
    bill = json.loads((WEIGHTS / "sbom.cdx.json").read_text())
    named = {component["name"]: component["hashes"][0]["content"] for component in bill["components"]}
    writer = WEIGHTS.with_name("mercury-135m-diffusion") / "adapter.safetensors"
    files = [*WEIGHTS.glob("*.safetensors"), writer, WEIGHTS / "tokenizer.json"]
    assert named == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
