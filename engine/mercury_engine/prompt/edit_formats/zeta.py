"""Zed's Zeta models, from the facts of their model cards: 1 (Qwen2.5-Coder 7B), 2 and 2.1 (Seed-Coder 8B).

Zeta 2 and 2.1 fill the gap of Seed-Coder's own format, whose suffix comes first. The wording of Zeta 1's instruction
and the head of a diff's hunk are ours.
"""

from dataclasses import replace

from mercury_engine.prompt.edit_formats.edit_format import EditFormat

_DOCUMENT = (
    "<[fim-suffix]>\n{after}<[fim-prefix]><filename>edit_history\n{edits}\n<filename>{path}\n{before}%s<[fim-middle]>%s"
)

ZETA_2_1 = EditFormat(
    family="zeta-2.1",
    names=r"zeta.?2[.-]1",
    prompt=_DOCUMENT % ("<|marker_1|>\n{region}<|marker_2|>\n", "<|marker_1|>\n"),
    edit="--- a/{path}\n+++ b/{path}\n{diff}",
    style="diff",
    max_edits=6,
    tokens=("<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>"),
    marks=("<filename>", "<|marker_1|>", "<|marker_2|>"),
    cursor="<|user_cursor|>",
    end="<|marker_2|>",
    nothing=("<|marker_1|>",),
)

ZETA_2 = replace(
    ZETA_2_1,
    family="zeta-2",
    names=r"zeta.?2",
    prompt=_DOCUMENT % ("<<<<<<< CURRENT\n{region}=======\n", ""),
    marks=("<filename>", "<<<<<<< CURRENT", "\n=======\n"),
    end=">>>>>>> UPDATED",
    nothing=("NO_EDITS",),
)

ZETA_1 = EditFormat(
    family="zeta-1",
    names=r"\bzeta\b",
    prompt=(
        "### Instruction:\nRewrite the editable region of the excerpt as the user would after these edits.\n\n"
        "### User Edits:\n\n{edits}\n### User Excerpt:\n\n```{path}\n{before}<|editable_region_start|>\n{region}"
        "<|editable_region_end|>\n{after}```\n\n### Response:\n\n```{path}\n<|editable_region_start|>\n"
    ),
    edit='User edited "{path}":\n\n```diff\n{diff}```\n\n',
    style="diff",
    max_edits=6,
    marks=("<|editable_region_start|>", "<|editable_region_end|>"),
    cursor="<|user_cursor_is_here|>",
    end="<|editable_region_end|>",
)
