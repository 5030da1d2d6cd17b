"""Sweep's next-edit models 0.5B, 1.5B and 7B (Qwen2.5-Coder, Apache-2.0), in the two dialects that Sweep has published.

`sweep` is that of the model cards of 0.5B and 1.5B: a window of 21 lines before the last edit, as it is now, and as it
should be are three files one after another, and the model writes the last one. Earlier edits are files named PATH.diff;
in the published sample the last one is not among them.

`sweep-server` is what the server sends that Sweep's own editor plugins start (PyPI `sweep-autocomplete` 0.1.1,
Apache-2.0; the card of the 7B v2 describes it, too): first the file as it was before the edits, of which only the lines
around are shown here, then edits with their lines' numbers and a line around, then the block around the cursor. The
block's numbers are none of the file: the first is that of the cursor's line in the block, the second as many lines
below.

Which of them the files of 0.5B and 1.5B were trained on is not documented. Other files could stand in front; they are
left out.
"""

from dataclasses import replace

from mercury_engine.prompt.edit_formats.edit_format import EditFormat

SWEEP = EditFormat(
    family="sweep",
    names=r"sweep.*next.?edit|next.?edit.*sweep",
    prompt=(
        "{edits}<|file_sep|>original/{path}\n{original}<|file_sep|>current/{path}\n{region}<|file_sep|>updated/{path}\n"
    ),
    edit="<|file_sep|>{path}.diff\noriginal:\n{original}updated:\n{updated}",
    style="blocks",
    max_edits=3,
    tokens=("<|file_sep|>", "<|endoftext|>"),
    lines_above=8,
    lines_below=3,
    shows_undone=False,
)

SWEEP_SERVER = replace(
    SWEEP,
    family="sweep-server",
    names=r"sweep.*next.?edit.?v2",
    prompt=(
        "<|file_sep|>{path}\n{file}\n{edits}<|file_sep|>original/{path}:{first}:{last}\n{original}"
        "<|file_sep|>current/{path}:{first}:{last}\n{region}<|file_sep|>updated/{path}:{first}:{last}\n"
    ),
    edit="<|file_sep|>{path}:{first}:{last}\noriginal:\n{original}updated:\n{updated}",
    max_edits=6,
    cursor="<|cursor|>",
    dropped=(" No newline at end of file",),
    lines_above=0,
    lines_below=0,
    undone=16,
    shows_undone=True,
    edit_context=1,
)
