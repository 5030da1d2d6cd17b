"""Takes prompts apart that a client has put together for a model's own gap format."""

import re
from dataclasses import dataclass, replace

from mercury_lsp.http.gap import MAX_OTHERS, Gap, OtherText


@dataclass(frozen=True, slots=True)
class GapTemplate:
    """The markers of one family: `prefix` text before the gap `suffix` text after it `middle`."""

    prefix: str
    suffix: str
    middle: str
    file: str = ""
    """Before the path of another file, whose text follows in the next line."""


TEMPLATES = (
    GapTemplate("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>"),
    GapTemplate("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>"),
    GapTemplate("<|fim▁begin|>", "<|fim▁hole|>", "<|fim▁end|>"),
    GapTemplate("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    GapTemplate("<PRE> ", " <SUF>", " <MID>"),
)
"""Of Qwen2.5-Coder and CodeGemma, StarCoder2, DeepSeek-Coder as some clients write it and as it is, and CodeLlama."""

_CODESTRAL = re.compile(r"\[SUFFIX\](?P<suffix>.*)\[PREFIX\](?P<prompt>.*)", re.DOTALL)


def taken_apart(gap: Gap) -> Gap:
    """The gap whose prompt is such a template, with text on both sides; another one as it is.

    Text of a file may spell markers, too: the first ones count.
    """
    if found := _CODESTRAL.fullmatch(gap.prompt):
        return replace(gap, prompt=found["prompt"], suffix=found["suffix"])
    for template in TEMPLATES:
        head, begun, rest = gap.prompt.partition(template.prefix)
        before, parted, after = rest.partition(template.suffix)
        after, ended, beyond = after.rpartition(template.middle)
        if begun and parted and ended and not beyond.strip():
            others = _files(head, template)
            path = others[-1].path if others and not others[-1].text.strip() else gap.path
            texts = tuple(other for other in others if other.text.strip())
            return replace(gap, prompt=before, suffix=after, path=path, others=(*gap.others, *texts))
    return gap


def _files(head: str, template: GapTemplate) -> list[OtherText]:
    """The files before the gap's own text; the last has no text if it is the one with the gap."""
    if not template.file or template.file not in head:
        return []
    _, *files = head.rsplit(template.file, MAX_OTHERS)
    parted = (each.partition("\n") for each in files)
    return [OtherText(text, path.strip()) for path, _, text in parted]
