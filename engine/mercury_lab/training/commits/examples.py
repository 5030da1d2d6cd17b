"""Turn a moment of a commit into an example of the next rewrite."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import accumulate

from mercury_engine.api import EditHunk
from mercury_engine.text.lines import lines_of

from mercury_lab.training.commits.commit_edit import Step
from mercury_lab.training.commits.moments import Moment
from mercury_lab.training.commits.stage import EditExample, Site, Stage, choose_example


def edit_example(
    moment: Moment,
    rng: random.Random,
    fits: Callable[[EditExample], bool],
    window: int = 0,
    around: tuple[int, int] | None = None,
) -> EditExample | None:
    """The next step's region rewritten, or in a quiet moment a region that stays; None if nothing fits.

    The history holds all steps made, in order, with the paths of other files. If the last one is partly typed, the
    region is the line being typed, which becomes all that is left of the step. `window`: see `choose_example`.
    `around`: lines above and below the last change, whose region is rewritten instead, or stays if nothing is left
    there.
    """
    if around is not None:
        return _at_change(moment, fits, around)
    number = moment.document
    stage = _stage(moment, number)
    found = _rest_of_typed(moment, stage) if moment.typed else choose_example(stage, moment.is_quiet, fits, rng, window)
    if found is None or (moment.typed and not fits(found)):
        return None
    return replace(found, history=tuple(_history(moment, number, iter(stage.history))))


def _stage(moment: Moment, number: int) -> Stage:
    """A file of a moment."""
    file = moment.edit.files[number]
    own = [_site(moment, step) for step in moment.made if step.file == number]
    left = (moment.edit.steps[n] for n in moment.order[moment.done + bool(moment.typed) :])
    ahead = [_site(moment, step) for step in left if step.file == number]
    return Stage(file.path, file.language, "commit", file.text, (*own, *ahead), len(own))


def _at_change(moment: Moment, fits: Callable[[EditExample], bool], around: tuple[int, int]) -> EditExample | None:
    """The region around the last change, which is not in the middle of a step."""
    if moment.typed or not moment.made:
        return None
    number = moment.made[-1].file
    stage = _stage(moment, number)
    above, below = around
    examples = (stage.around_change(*size) for size in (around, (above // 2, below // 2)))
    found = next((each for each in examples if each and fits(each)), None)
    return found and replace(found, history=tuple(_history(moment, number, iter(stage.history))))


def _site(moment: Moment, step: Step) -> Site:
    """A step by characters of the file before the commit."""
    starts = list(accumulate(map(len, lines_of(moment.edit.files[step.file].text)), initial=0))
    return Site(starts[step.start], starts[step.end], step.text)


def _rest_of_typed(moment: Moment, stage: Stage) -> EditExample | None:
    """The line being typed, rewritten to the rest of its step."""
    rest, document = moment.open[0], moment.documents[moment.document]
    region = document.starts[rest.start], document.starts[rest.end]
    after = document.text[: region[0]] + rest.text + document.text[region[1] :]
    return EditExample(stage.path, stage.language, stage.before, after, (), region, rest.text, stage.kind)


def _history(moment: Moment, number: int, own: Iterator[EditHunk]) -> Iterator[EditHunk]:
    """The steps made as hunks, oldest first; those of the document itself have their places in it."""
    for step in moment.made:
        if step.file == number:
            yield next(own)
        else:
            file = moment.edit.files[step.file]
            removed = "".join(lines_of(file.text)[step.start : step.end])
            yield EditHunk(0, removed, step.text, file.path)
