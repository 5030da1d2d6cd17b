"""The families of models made for edits: their prompts, byte for byte as they were trained, and their answers.

- `mercury-edit`, by Inception: one message with the file, the window in it and the edits; the window comes back.
- `instinct`, by Continue (Qwen2.5-Coder 7B, Apache-2.0; core/nextEdit/templating/instinct.ts): one message; the region
  between its marks comes back. The fence that ends the excerpt is not begun there.
- `zeta-2` and `zeta-2.1`, by Zed (Seed-Coder 8B, Apache-2.0): the text below, the edits, the text above, the window.
  Zeta 2 writes the window, or NO_EDITS; 2.1 writes it between two numbered markers, the same one twice for no change.
- `sweep`, by Sweep (Qwen2.5-Coder, Apache-2.0), as its clients use it: the file, the edits, and the window thrice with
  its line numbers; the model goes on at the cursor's line. `sweep-card` is the prompt of the cards of the 0.5B and the
  1.5B: the edits, and the window before the last edit, as it is, and as it should be.

Other files that some of them could show are left out.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from mercury_engine.api import EditHunk, RewriteRequest
from mercury_engine.errors import ModelCorrupt
from mercury_engine.model_folders import read_json
from mercury_engine.prompt.edit_families.window import Family, below, ended, last_edits, marked
from mercury_engine.text.lines import lines_of

MAX_EDITS, MAX_CARD_EDITS = 6, 3

CARD_EDIT_CHARS = 1200
"""Most characters of one recent edit in `sweep-card`; longer ones are left out."""

_SECTIONS = "recently_viewed_code_snippets", "current_file_content", "code_to_edit", "edit_diff_history"
_MERCURY_CURSOR = "<|cursor|>"


def _mercury_prompt(window: RewriteRequest) -> str:
    seen, file, code, edits = _SECTIONS
    text = f"<|{code}|>\n{ended(marked(window, _MERCURY_CURSOR))}<|/{code}|>\n"
    shown = f"current_file_path: {window.path}\n{window.near}{text}{ended(below(window))}"
    history = "".join(last_edits(window, "--- {path}\n+++ {path}\n{diff}\n"))
    return "\n".join(f"<|{name}|>\n{body}<|/{name}|>\n" for name, body in ((seen, ""), (file, shown), (edits, history)))


MERCURY_EDIT = Family(
    "mercury-edit",
    _mercury_prompt,
    lambda window, text: window.text if text.strip() in ("None", "") else text,
    lines=(150, 150),
    chars=450,
    cursor=_MERCURY_CURSOR,
    markers=(*(f"<|{end}{name}|>" for name in _SECTIONS for end in ("", "/")), _MERCURY_CURSOR),
    is_chat=True,
    names=("mercury-edit", "mercury-coder", "mercury-next-edit"),
)

_INSTINCT = "<|editable_region_start|>", "<|editable_region_end|>", "<|user_cursor_is_here|>"
_INSTINCT_TASK = (
    "Reference the user excerpt, user edits, and the snippets to understand the developer's intent. Update the "
    "editable region of the user excerpt by predicting and completing the changes they would have made next. This may "
    "be a deletion, addition, or modification of code."
)


def _instinct_prompt(window: RewriteRequest) -> str:
    start, end, cursor = _INSTINCT
    edits = "\n".join(last_edits(window, 'User edited file "{path}"\n\n```diff\n{diff}```', MAX_EDITS))
    region = f"{start}\n{ended(marked(window, cursor))}{end}\n"
    excerpt = f"{window.path}\n\n{window.near}{region}{ended(below(window))}"
    heads = f"{_INSTINCT_TASK}\n\n### Context:\n\n\n### User Edits:\n\n{edits}"
    return f"{heads}\n\n### User Excerpt:\n{excerpt}```\n### Response:"


INSTINCT = Family(
    "instinct",
    _instinct_prompt,
    lambda window, text: text.rpartition(f"{_INSTINCT[0]}\n")[2].partition(_INSTINCT[1])[0],
    lines=(1, 5),
    chars=3000,
    cursor=_INSTINCT[2],
    markers=(*_INSTINCT, "<|context_file|>", "<|snippet|>"),
    is_chat=True,
    names=("instinct",),
)

_SUFFIX, _PREFIX, _MIDDLE, _FILENAME = "<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>", "<filename>"
_ZETA_CURSOR = "<|user_cursor|>"
_CURRENT, _MIDST, _UPDATED = "<<<<<<< CURRENT\n", "=======\n", ">>>>>>> UPDATED"
_FIRST, _LAST = "<|marker_1|>", "<|marker_2|>"
NO_EDITS = "NO_EDITS"


def _zeta_prompt(window: RewriteRequest, before: str, after: str) -> str:
    suffix = f"\n{ended(below(window))}" if below(window) else "\n"
    edits = "\n".join(last_edits(window, "--- a/{path}\n+++ b/{path}\n{diff}", MAX_EDITS))
    history = f"{_FILENAME}edit_history\n{edits}\n" if edits else ""
    file = f"{_FILENAME}{window.path}\n{window.near}{before}{ended(marked(window, _ZETA_CURSOR))}{after}"
    return f"{_SUFFIX}{suffix}{_PREFIX}{history}{file}{_MIDDLE}"


def _zeta_2_answer(window: RewriteRequest, text: str) -> str:
    text = text.partition(_UPDATED)[0]
    return window.text if text.lstrip().startswith(NO_EDITS) else text


def _zeta_2_1_answer(window: RewriteRequest, text: str) -> str:
    if re.match(r"\s*<\|marker_(\d)\|>\s*<\|marker_\1\|>", text):
        return window.text
    return text.strip("\n").removeprefix(_FIRST).removeprefix("\n").partition(_LAST)[0]


ZETA_2 = Family(
    "zeta-2",
    lambda window: _zeta_prompt(window, _CURRENT, _MIDST),
    _zeta_2_answer,
    lines=(15, 15),
    chars=3000,
    cursor=_ZETA_CURSOR,
    markers=(_SUFFIX, _PREFIX, _MIDDLE, _FILENAME, _ZETA_CURSOR, _CURRENT.strip(), _UPDATED),
    stop=(f"{_UPDATED}\n", _UPDATED),
    names=("zeta-2", "zeta2", "zeta_2"),
)

ZETA_2_1 = replace(
    ZETA_2,
    name="zeta-2.1",
    prompt=lambda window: _zeta_prompt(window, f"{_FIRST}\n", f"{_LAST}\n"),
    answer=_zeta_2_1_answer,
    echo=lambda window: f"{_FIRST}\n{ended(window.text)}",
    chars=1050,  # 350 tokens
    markers=(_SUFFIX, _PREFIX, _MIDDLE, _FILENAME, _ZETA_CURSOR, _FIRST, _LAST, "<|marker_"),
    stop=(_LAST,),
    names=("zeta-2.1", "zeta2.1", "zeta_2.1"),
)

_SEPARATOR, _END, _SWEEP_CURSOR = "<|file_sep|>", "<|endoftext|>", "<|cursor|>"


def _sweep_prompt(window: RewriteRequest) -> str:
    last_line = window.first_line + len(lines_of(window.text)) - 1
    name = f"{window.path}:{window.first_line}:{last_line}"
    files = (
        f"{window.path}\n{window.near}{ended(window.text)}{ended(below(window))}",
        *last_edits(window, "{path}.diff\noriginal:\n{removed}updated:\n{inserted}", MAX_EDITS),
        f"original/{name}\n{ended(window.text)}",
        f"current/{name}\n{ended(marked(window, _SWEEP_CURSOR))}",
        f"updated/{name}\n{_lines_above_cursor(window)}",
    )
    return "".join(f"{_SEPARATOR}{each}" for each in files)


def _lines_above_cursor(window: RewriteRequest) -> str:
    """With these lines the prompt begins the answer."""
    return window.text[: window.text.rfind("\n", 0, window.cursor or 0) + 1]


def _card_prompt(window: RewriteRequest) -> str:
    original, earlier = window.text, window.history
    last = window.history[-1] if window.history else None
    if last is not None and last.path is None and last.inserted and last.inserted in window.text:
        original, earlier = window.text.replace(last.inserted, last.removed, 1), window.history[:-1]
    short = [each for each in earlier[-MAX_CARD_EDITS:] if len(each.removed) + len(each.inserted) <= CARD_EDIT_CHARS]
    files = (
        *(_card_edit(each, window.path) for each in short),
        f"original/{window.path}\n{ended(original)}",
        f"current/{window.path}\n{ended(window.text)}",
        f"updated/{window.path}\n",
    )
    return "".join(f"{_SEPARATOR}{each}" for each in files)


def _card_edit(hunk: EditHunk, path: str) -> str:
    original, updated = (side.strip("\n") for side in (hunk.removed, hunk.inserted))
    return f"{hunk.path or path}.diff\noriginal:\n{original}\nupdated:\n{updated}\n"


SWEEP = Family(
    "sweep",
    _sweep_prompt,
    lambda window, text: _lines_above_cursor(window) + text,
    echo=lambda window: window.text[len(_lines_above_cursor(window)) :],
    lines=(10, 10),
    chars=3000,
    cursor=_SWEEP_CURSOR,
    markers=(_SEPARATOR, _END, _SWEEP_CURSOR),
    stop=(_SEPARATOR, _END),
    names=("sweep",),
)

SWEEP_CARD = replace(
    SWEEP,
    name="sweep-card",
    prompt=_card_prompt,
    answer=lambda window, text: text,
    echo=lambda window: window.text,
    names=(),
)

FAMILIES = (MERCURY_EDIT, ZETA_2_1, ZETA_2, SWEEP, SWEEP_CARD, INSTINCT)
"""A model is of the first family that has a part of its name."""

FORMAT_FILE, MEND = "edit_format.json", "correct it or delete it"
"""A file in a model's folder, `{"family": "sweep"}`, which goes before the model's name."""


def family_of(model: str, named: str = "") -> Family | None:
    """The family that is `named`, dashes and dots apart, or else the one that a model's name tells."""
    if named:
        return next((each for each in FAMILIES if _plain(each.name) == _plain(named)), None)
    return next((each for each in FAMILIES if any(part in model.lower() for part in each.names)), None)


def family_of_folder(folder: Path, names: Iterable[str]) -> Family | None:
    """The family of a model in this process: what its folder says, else its names. Raises ModelCorrupt."""
    here, path = [each for each in FAMILIES if not each.is_chat], folder / FORMAT_FILE
    if not path.is_file():
        return next((found for name in names if (found := family_of(name)) in here), None)
    said = read_json(path, MEND)
    if (found := next((each for each in here if said == {"family": each.name}), None)) is None:
        known = ", ".join(each.name for each in here)
        raise ModelCorrupt(f'{path} is not {{"family": NAME}} with one of {known}; {MEND}')
    return found


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace(".", "")
