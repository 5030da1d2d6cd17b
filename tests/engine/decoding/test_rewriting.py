"""Rewriting a region: what stays costs few passes, the end is where the suffix begins, the chance is of the whole."""

import math
from dataclasses import replace

import pytest
from mercury_engine.api import Control, EditHunk, FillRequest, Rewrite, RewriteRequest
from mercury_engine.decoding.autoregressive.rewriting import PASS_ROWS
from mercury_engine.decoding.autoregressive.written_region import WrittenRegion
from mercury_engine.errors import Cancelled

from tests.support import tiny
from tests.support.scripted_network import engine as scripted_engine
from tests.support.scripted_network import writes

NEAR = "import os\n\n\n"
REGION = """\
def views(self, names):
    found = []
    for name in names:
        if name in self.views:
            found.append(self.views[name])
    return found
"""
SUFFIX = ("\n\nclass Application:\n    pass\n",)
HISTORY = (EditHunk(0, "def view(name):\n", "def view(name, default):\n"),)
REQUEST = RewriteRequest(REGION, NEAR, ("# path: a.py\n",), SUFFIX, HISTORY, "a.py", "python")


class Desk:
    """An engine whose model writes a given text in place of the region."""

    def __init__(self, folder, markers=()):
        self.engine, self.network = scripted_engine(folder, markers)
        self.tokenizer = self.engine.tokenizer
        self.behind = [self.tokenizer.markers.middle[0]] if markers else self.tokenizer.encode(NEAR)
        self.end = {self.tokenizer.markers.end: 0.99} if markers else None

    def rewrite(
        self, text: str, request: RewriteRequest = REQUEST, change=None, control: Control | None = None
    ) -> Rewrite:
        follows = "" if self.end else "".join(request.suffix)
        script = writes(self.tokenizer, text + follows, self.end or {0: 0.99}, self.behind)
        self.network.script = script if change is None else change(script)
        self.network.passes.clear()
        return self.engine.rewrite(request, control)

    def tokens(self, text: str) -> int:
        return len(self.tokenizer.encode(text))


@pytest.fixture(params=[tiny.QWEN_MARKERS, ()], ids=["gap format", "plain blocks"])
def desk(request, tmp_path):
    return Desk(tmp_path / "model", request.param)


def test_text_that_stays_costs_a_pass_for_many_tokens(desk):
    found = desk.rewrite(REGION)
    assert (found.text, found.is_finished) == (REGION, True)
    assert desk.tokens(REGION) > 60
    assert found.steps <= math.ceil((desk.tokens(REGION) + 12) / PASS_ROWS) + 1


CHANGES = {
    "a word": ("for name in names", "for view in names"),
    "a longer word": ("found.append(", "collected_names.extend("),
    "an argument inserted": ("views(self, names)", "views(self, names, default)"),
    "an argument deleted": ("views(self, names)", "views(self)"),
    "a line inserted": ("    found = []\n", "    found = []\n    missing = None\n"),
    "two lines deleted": ("    for name in names:\n        if name in self.views:\n", ""),
    "the first line": ("def views(self, names):\n", "@property\ndef views(self):\n"),
    "the last line": ("    return found\n", "    return tuple(found)\n"),
    "the last line deleted": ("    return found\n", ""),
}


@pytest.mark.parametrize(("old", "new"), CHANGES.values(), ids=CHANGES)
def test_a_change_costs_a_few_passes_more(desk, old, new):
    changed = REGION.replace(old, new)
    unchanged, found = desk.rewrite(REGION), desk.rewrite(changed)
    assert (found.text, found.is_finished) == (changed, True)
    assert found.steps <= unchanged.steps + 2 + desk.tokens(new)


def test_the_prompt_shows_edits_and_the_present_text_before_the_region(desk):
    contexts = []
    desk.rewrite(REGION, change=lambda script: lambda before: (contexts.append(before), script(before))[1])
    prompt = desk.tokenizer.decode(contexts[-1])
    places = [
        prompt.index(text) for text in ("# path: a.py", "# recent edits", "+def view(name, default)", "# old version")
    ]
    assert places == sorted(places)
    assert prompt.count("def views(self, names)") == 2  # as it is now, and as it is written


def test_a_gap_that_ends_inside_a_line_goes_on(tmp_path):
    desk = Desk(tmp_path / "model", tiny.QWEN_MARKERS)
    inside = [0]

    def ends_early(script):
        def changed(before):
            chances = dict(script(before))
            if desk.tokenizer.decode(before).endswith("found = ["):
                inside[0] += 1
                chances = {next(iter(chances)): 0.3, desk.tokenizer.markers.end: 0.6}
            return chances

        return changed

    assert desk.rewrite(REGION, change=ends_early).text == REGION
    assert inside[0]


@pytest.mark.parametrize(("go_on", "end", "ends"), [(0.3, 0.6, False), (0.08, 0.75, False), (0.03, 0.9, True)])
def test_a_region_ends_before_its_last_lines_only_if_that_is_ten_times_as_likely(tmp_path, go_on, end, ends):
    desk = Desk(tmp_path / "model", tiny.QWEN_MARKERS)
    kept, region = "total = 1\n", "total = 1\nfound = 2\n"

    def ends_early(script):
        def changed(before):
            chances = script(before)
            at_last_line = desk.tokenizer.decode(before).endswith(kept)
            return {next(iter(chances)): go_on, desk.tokenizer.markers.end: end} if at_last_line else chances

        return changed

    found = desk.rewrite(region, replace(REQUEST, text=region), ends_early)
    assert found.text == (kept if ends else region)
    assert [each.probability for each in found.hunks] == ([pytest.approx(end)] if ends else [])


def with_chance(desk, text, chance):
    """The script with another probability behind a text."""

    def change(script):
        def changed(before):
            chances = script(before)
            return dict.fromkeys(chances, chance) if desk.tokenizer.decode(before).endswith(text) else chances

        return changed

    return change


def test_a_hunk_has_the_chance_of_its_own_tokens(tmp_path):
    desk = Desk(tmp_path / "model", tiny.QWEN_MARKERS)
    changed = REGION.replace("return found", "return names")
    [hunk] = desk.rewrite(changed).hunks
    assert hunk.probability == pytest.approx(0.99 ** (desk.tokens(" names")), rel=0.02)
    assert (hunk.start, hunk.end, hunk.text) == (5, 6, "    return names\n")
    for doubt in (0.55, 0.95):  # elsewhere, in a line that stays
        found = desk.rewrite(changed, change=with_chance(desk, "found = []\n    for", doubt))
        assert found.hunks[0].probability == pytest.approx(hunk.probability, rel=1e-4)
    assert desk.rewrite(REGION, change=with_chance(desk, "found = []\n    for", 0.45)).hunks == ()


def test_a_change_is_written_though_each_other_token_is_less_likely_than_the_present_one(tmp_path):
    desk = Desk(tmp_path / "model", tiny.QWEN_MARKERS)
    changed = REGION.replace("return found", "return names")
    present, new = (desk.tokenizer.encode(text)[0] for text in (" found", " names"))

    as_it_is = writes(desk.tokenizer, REGION, desk.end, desk.behind)

    def torn(stays, others):
        def change(script):
            def chances(before):
                written = desk.tokenizer.decode(before).rpartition("return")[2]
                if not written:
                    return {present: stays, new: others, 7: 0.19, 8: 0.19}
                return as_it_is(before) if written.startswith(" f") else script(before)

            return chances

        return change

    tokens = desk.tokens(" names")
    assert desk.rewrite(changed, change=torn(0.3, 0.29)).hunks == ()  # the line as it is remains the likeliest
    [hunk] = desk.rewrite(changed, change=torn(0.3, 0.32)).hunks
    assert hunk.probability == pytest.approx(0.32 * 0.99 ** (tokens - 1), rel=0.05)


def test_a_rewrite_is_cancelled_within_one_pass(desk):
    control = Control()
    desk.network.on_pass = lambda: control.cancel.set() if len(desk.network.passes) == 4 else None
    with pytest.raises(Cancelled):
        desk.rewrite(REGION, control=control)
    assert len(desk.network.passes) == 4


def test_a_second_rewrite_reads_only_what_is_new(desk):
    first, second = desk.rewrite(REGION), desk.rewrite(REGION)
    assert (first.tokens_read > 0, second.tokens_read) == (True, 0)


@pytest.mark.parametrize("markers", [(), tiny.QWEN_MARKERS], ids=["plain blocks", "gap format"])
def test_a_real_network_rewrites_as_it_would_one_token_at_a_time(tmp_path, markers, monkeypatch):
    engine = tiny.load(tiny.folder(tmp_path / "model", rank=0, markers=markers))
    fast = engine.rewrite(replace(REQUEST))
    monkeypatch.setattr(WrittenRegion, "draft", lambda *_: [])
    slow = engine.rewrite(replace(REQUEST))
    assert fast.text == slow.text
    assert [each.probability for each in fast.hunks] == pytest.approx(
        [each.probability for each in slow.hunks], abs=1e-4
    )
    assert engine.fill(FillRequest(near="x = ")).steps
