"""Sweep's next-edit models 0.5B, 1.5B and 7B (Qwen2.5-Coder, Apache-2.0), from the facts of their model cards.

The window before the last edit, as it is now, and as it should be are three files one after another; the model writes
the last one. Earlier edits are files named PATH.diff. Other files could stand in front; they are left out.
"""

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
    lines_around=10,
)
