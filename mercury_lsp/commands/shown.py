"""The text that an editor shows automatically at a cursor, for the commands that print it."""

from dataclasses import dataclass, replace
from functools import partial

from mercury_engine.api import Control, Fill, InferenceEngine, OnStep

from mercury_lsp.completion.postprocessing import postprocess
from mercury_lsp.completion.price import Price
from mercury_lsp.completion.silence import why_silent
from mercury_lsp.context.context import CompletionContext
from mercury_lsp.context.workspace import is_ignored
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.syntax import first_error
from mercury_lsp.documents.uris import path_of
from mercury_lsp.engine_host.blocking import filled
from mercury_lsp.settings import Settings, is_elsewhere


@dataclass(frozen=True, slots=True)
class Shown:
    """A fill and the text that an editor shows of it."""

    fill: Fill
    text: str
    """The shown text; empty if there is none."""
    reason: str | None
    """Why nothing is shown; None if the text is."""

    @classmethod
    def of(
        cls,
        engine: InferenceEngine,
        settings: Settings,
        context: CompletionContext,
        snapshot: Snapshot,
        on_step: OnStep | None = None,
    ) -> "Shown":
        """Fill the gap as for an automatic request, without a deadline. Raises what the engine raises."""
        if context.on_secret:
            reason = "the line looks like a secret; the model does not see it"
            return cls(Fill("", 0.0, steps=0, elapsed=0.0), "", reason)
        utility = Price().gate(engine.utility, settings.eagerness, context.language_id)
        request = replace(context.request(), effort=settings.effort, utility=utility)
        check = partial(first_error, snapshot, context.offset)
        path = path_of(snapshot.uri)
        stays_here = is_elsewhere(settings.engine) and path is not None and is_ignored(path, None)
        fill = filled(engine, request, Control(on_step=on_step, check=check, stays_here=stays_here))
        text = postprocess(fill.text, context, snapshot)
        if text:
            why = why_silent(text, fill.confidence, fill.is_finished, context, utility)
        elif fill.text:
            why = f"the code around the cursor already says {fill.text!r}"
        else:
            why = "the model is not sure enough of anything that could come here"
        return cls(fill, "" if why else text, why)

    @property
    def complaint(self) -> str:
        """A sentence that says why nothing is shown; empty if something is."""
        return f"an editor shows nothing here, because {self.reason}" if self.reason else ""
