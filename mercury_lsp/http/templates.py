"""Parses prompts that a client has written in a model's own fill-in-the-middle format."""

import re
from dataclasses import dataclass, replace

from mercury_engine.text.brackets import QUOTES

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

_CODESTRAL_SUFFIX, _CODESTRAL_PREFIX = "[SUFFIX]", "[PREFIX]"


def taken_apart(gap: Gap) -> Gap:
    """The gap with the template in its prompt resolved into both sides; other gaps stay as they are.

    Text of a file may spell markers, too: those in quotes don't count beside others, and of several before the gap's
    end the last one is the template's.
    """
    if gap.prompt.startswith(_CODESTRAL_SUFFIX) and (at := _places(gap.prompt, _CODESTRAL_PREFIX)):
        suffix, prompt = gap.prompt[len(_CODESTRAL_SUFFIX) : at[0]], gap.prompt[at[0] + len(_CODESTRAL_PREFIX) :]
        return replace(gap, prompt=prompt, suffix=suffix)
    for template in TEMPLATES:
        if (parts := _parts(gap.prompt, template)) is not None:
            head, before, after = parts
            others = _files(head, template)
            path = others[-1].filename if others and not others[-1].text.strip() else gap.path
            texts = tuple(other for other in others if other.text.strip())
            return replace(gap, prompt=before, suffix=after, path=path, others=(*gap.others, *texts))
    return gap


def _parts(prompt: str, template: GapTemplate) -> tuple[str, str, str] | None:
    """The text before the prefix marker and on both sides of the gap; None for other prompts."""
    whole, ended, beyond = prompt.rpartition(template.middle)
    begins = _places(whole, template.prefix)
    if not begins or not ended or beyond.strip():
        return None
    start = begins[0] + len(template.prefix)
    if not (ends := _places(whole[start:], template.suffix)):
        return None
    end = start + ends[-1]
    return whole[: begins[0]], whole[start:end], whole[end + len(template.suffix) :]


def _places(text: str, marker: str) -> list[int]:
    """Where a marker occurs outside quotes, or, if it never does, inside them."""
    places = [found.start() for found in re.finditer(re.escape(marker), text)]
    return [at for at in places if not _is_quoted(text, at, at + len(marker))] or places


def _is_quoted(text: str, start: int, end: int) -> bool:
    return text[start - 1 : start] in QUOTES and text[end : end + 1] == text[start - 1 : start] != ""


def _files(head: str, template: GapTemplate) -> list[OtherText]:
    """The files before the gap's own text; the last has no text if it is the one with the gap."""
    if not template.file or template.file not in head:
        return []
    _, *files = head.rsplit(template.file, MAX_OTHERS)
    parted = (each.partition("\n") for each in files)
    return [OtherText(text, path.strip()) for path, _, text in parted]
