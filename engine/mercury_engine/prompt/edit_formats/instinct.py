"""Continue's Instinct (Qwen2.5-Coder 7B, Apache-2.0), from its template file `core/nextEdit/templating/instinct.ts`.

The file fixes the edits, the markers and where they stand; the titles of the sections are those of Zeta 1, and were not
checked against the model.
"""

from mercury_engine.prompt.edit_formats.edit_format import EditFormat

INSTINCT = EditFormat(
    family="instinct",
    names=r"\binstinct\b",
    prompt=(
        "<|im_start|>user\n### User Edits:\n\n{edits}\n### User Excerpt:\n{path}\n\n{before}<|editable_region_start|>\n"
        "{region}<|editable_region_end|>\n{after}<|im_end|>\n<|im_start|>assistant\n<|editable_region_start|>\n"
    ),
    edit='User edited file "{path}"\n\n```diff\n{diff}```\n',
    style="diff",
    max_edits=6,
    tokens=("<|im_start|>", "<|im_end|>"),
    marks=("<|editable_region_start|>", "<|editable_region_end|>"),
    cursor="<|user_cursor_is_here|>",
    end="<|editable_region_end|>",
)
