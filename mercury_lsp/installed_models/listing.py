"""The models that are installed or known, with what each needs and how fast it is here."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mercury_engine.downloads.catalogue import KNOWN, KnownModel
from mercury_engine.downloads.files import bytes_in
from mercury_engine.errors import ModelError
from mercury_engine.model_folders import BUNDLED_MODEL
from mercury_engine.models.weights import read_config, weight_bytes

from mercury_lsp import default_model
from mercury_lsp.installed_models.store import Measurement, Store
from mercury_lsp.settings import BUNDLED

Reference = tuple[Measurement, int]
"""A measurement, and the bytes of the measured model's weights."""

BUNDLED_TITLE, BUNDLED_LICENCE = "Mercury 135M", "Apache-2.0"


@dataclass(frozen=True, slots=True)
class Speed:
    """Milliseconds that a model takes on this machine."""

    pass_ms: float
    answer_ms: float
    estimated: bool
    """Scaled from another model's measurement by the bytes that a pass reads."""
    day: str | None = None
    """When it was measured; None if it was estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A row of the list."""

    name: str
    title: str
    installed: bool = False
    in_use: bool = False
    """Whether editors use it where their settings name no model."""
    in_use_for_edits: bool = False
    """The same for next edits, where they have a model of their own."""
    size_bytes: int
    """Bytes on the disk, or of the download."""
    weight_bytes: int
    """Bytes of the weight files once installed, which are about what a forward pass reads."""
    licence: str | None
    memory_mb: float | None
    speed: Speed | None
    """None if nothing has been measured."""
    source: str | None
    sees_after: bool = True
    """Whether it sees the text after the cursor."""


def models(store: Store) -> list[Model]:
    """The bundled model, the other installed ones, then those that could be added. Raises SettingsError.

    What was not measured is estimated from the bundled model's measurement.
    """
    chosen, reference = default_model.read() or BUNDLED, _reference(store)
    installed = [_installed(store, name, chosen, reference) for name in (BUNDLED, *store.names())]
    return installed + [
        _available(model, reference) for name, model in KNOWN.items() if name not in {each.name for each in installed}
    ]


def _installed(store: Store, name: str, chosen: str, reference: Reference | None) -> Model:
    folder, record, known = store.path(name), store.record(name), KNOWN.get(name)
    weights, measured = weight_bytes(folder), record.measured if record else None
    licence = record.licence if record else None
    return Model(
        name=name,
        title=BUNDLED_TITLE if name == BUNDLED else known.title if known else name,
        installed=True,
        in_use=name == chosen,
        in_use_for_edits=name == default_model.read(edits=True),
        size_bytes=bytes_in(folder),
        weight_bytes=weights,
        licence=BUNDLED_LICENCE if name == BUNDLED else licence,
        memory_mb=measured.memory_mb if measured else None,
        speed=_speed(measured, reference, weights),
        source=record.source if record else None,
        sees_after=_sees_after(folder),
    )


def _sees_after(folder: Path) -> bool:
    """Whether a model sees the text after the cursor, as far as its configuration can be read."""
    with suppress(ModelError):
        attention = read_config(folder).masked_attention
        return attention is None or attention.block is None
    return True


def _speed(found: Measurement | None, reference: Reference | None, weights: int) -> Speed | None:
    """As measured, or estimated in proportion to the bytes that a pass reads."""
    if found is not None:
        return Speed(found.pass_ms, found.answer_ms, False, found.day)
    if reference is None or not weights:
        return None
    measured, measured_bytes = reference
    ratio = weights / measured_bytes
    return Speed(measured.pass_ms * ratio, measured.answer_ms * ratio, estimated=True)


def _available(model: KnownModel, reference: Reference | None) -> Model:
    return Model(
        name=model.name,
        title=model.title,
        size_bytes=model.download_bytes,
        weight_bytes=model.weight_bytes,
        licence=model.licence,
        memory_mb=model.memory_mb,
        speed=_speed(None, reference, model.weight_bytes),
        source=model.repository,
    )


def _reference(store: Store) -> Reference | None:
    """The bundled model's measurement, if there is one."""
    record, weights = store.record(BUNDLED), weight_bytes(BUNDLED_MODEL)
    return (record.measured, weights) if record is not None and record.measured is not None and weights else None
