"""Settings are parsed whole or not at all."""

import pytest

from mercury_lsp import default_model
from mercury_lsp.errors import SettingsError
from mercury_lsp.settings import Settings, named_engines


def test_keys_are_in_camel_case():
    parsed = Settings.parse({"deadlineMs": 80, "disabledLanguages": ["markdown"], "eagerness": "low"})
    assert parsed == Settings(deadline_ms=80, disabled_languages=("markdown",), eagerness="low")


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("device", "gpu", "auto, cpu, cuda"),
        ("effort", "max", "instant, low, medium, high"),
        ("effort", ["low"], "instant, low, medium, high"),
        ("threads", 0, "from 1"),
        ("threads", True, "from 1"),
        ("effort", None, "instant, low, medium, high"),
        ("deadlineMs", -5, "from 1"),
        ("eagerness", 1.5, "low, medium, high"),
        ("eagerness", "off", "low, medium, high"),
        ("enabled", "yes", "true or false"),
        ("disabledLanguages", "python", "a list"),
        ("disabledLanguages", [1], "a list"),
        ("disabledIn", ["comment"], "a list of comments, strings"),
        ("disabledIn", "comments", "a list of comments, strings"),
        ("disabledIn", [["comments"]], "a list of comments, strings"),
        ("display", "hidden", "text, subtle"),
        ("model", "", "a folder"),
        ("statistics", "off", "true or false"),
        ("engine", "", "an http or https URL"),
        ("engine", 1, "an http or https URL"),
        ("engine", "team.example", "an http or https URL"),
        ("engine", "file:///etc/passwd", "an http or https URL"),
        ("engine", "https://user:password@team.example", "without a password"),
        ("engine", "https://team.example:99999", "an http or https URL"),
        ("engine", "https://a b", "an http or https URL"),
        ("engine", "https://team.example/?key=1", "without a password"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(key: str, value: object, allowed: str):
    with pytest.raises(SettingsError) as caught:
        Settings.parse({key: value})
    assert f"mercury.{key}: {value!r} is not " in str(caught.value)
    assert allowed in str(caught.value)


def test_an_unknown_key_is_named_with_the_known_ones():
    with pytest.raises(SettingsError, match=r"mercury\.deadline_ms is not a setting; allowed: model, .*deadlineMs"):
        Settings.parse({"deadline_ms": 3})


def test_all_problems_are_named_at_once():
    with pytest.raises(SettingsError) as caught:
        Settings.parse({"effort": "max", "colour": "red"})
    assert "mercury.effort" in str(caught.value) and "mercury.colour" in str(caught.value)


def test_an_engine_counts_only_if_the_environment_names_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MERCURY_ENGINE", "https://one.example http://two.example:8012")
    for url in named_engines():
        Settings.parse({"engine": url}).require_trusted_models(())
    assert default_model.added_to({})["engine"] == "https://one.example"
    assert default_model.added_to({"engine": None})["engine"] is None
    for wrong in ("https://one.example.evil", "http://one.example", "https://one.example/x", "http://127.0.0.1:1"):
        with pytest.raises(SettingsError, match="add the URL to MERCURY_ENGINE"):
            Settings.parse({"engine": wrong}).require_trusted_models(())
    monkeypatch.delenv("MERCURY_ENGINE")
    assert default_model.added_to({})["engine"] is None


def test_a_model_for_edits_is_one_of_this_machine_whatever_fills():
    edits = Settings(engine="https://one.example", edit_model="sweep").for_edits
    assert edits is not None and (edits.engine, edits.model) == (None, "sweep")


def test_only_engine_model_device_and_threads_need_another_engine():
    assert Settings(effort="low", eagerness="high").engine_key == Settings().engine_key
    assert Settings(device="cpu").engine_key != Settings().engine_key
    assert Settings(engine="https://one.example").engine_key != Settings().engine_key
