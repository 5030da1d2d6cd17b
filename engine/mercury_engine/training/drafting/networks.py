"""The two networks of a drafting run: the writer in training, and the reader that it drafts for."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import torch

from mercury_engine.errors import RequestError
from mercury_engine.models import decoder_weights, element_type, weights
from mercury_engine.models.cpu import CpuNetwork, layers_for
from mercury_engine.models.decoder import Decoder
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_engine.training.drafting.canvases import WindowReading, read_window
from mercury_engine.training.drafting.kernel_reader import KernelReader
from mercury_engine.training.drafting.mixed_precision import MixedPrecisionNetwork
from mercury_engine.training.drafting.windows import Window
from mercury_engine.training.optimisation.train import initialise_markers

Precision = Literal["float32", "mixed"]
"""What frozen matrices are multiplied in, float32 or bfloat16; the rest is float32."""

PRECISIONS: tuple[Precision, ...] = get_args(Precision)


@dataclass(frozen=True, slots=True)
class DraftingNetworks:
    """A writer in training and the reader that it drafts for, which may be the writer's own network."""

    writer: Decoder
    reader: Decoder | KernelReader
    start_id: int

    def read(self, window: Window) -> WindowReading:
        """See `read_window`."""
        return read_window(self.writer, window, self.start_id, self.reader)


def drafting_writer(base: Path, rank: int, device: torch.device, precision: Precision | None) -> Decoder:
    """The base with its own writer, or with a new one of this rank if it has none; None measures the precision."""
    known = weights.read_config(base)
    network = MixedPrecisionNetwork(replace(known, adapter_rank=known.adapter_rank or rank))
    decoder_weights.fill_reader(network, base)
    if known.adapter_rank:
        decoder_weights.fill_adapter(network, weights.read_tensors(base, "adapter*.safetensors"), base)
    else:
        initialise_markers(network, Tokenizer(base))
    network = network.to(device)
    if (precision or measured_precision(device)) == "mixed":
        network.convert_frozen()
    return network


def measured_precision(device: torch.device) -> Precision:
    """The precision that multiplies faster on this device."""
    return "mixed" if element_type.fastest(device) is torch.bfloat16 else "float32"


def kernel_reader(base: Path) -> KernelReader:
    """The base run by the C kernels in one thread. Raises RequestError if they cannot run it."""
    config = weights.read_config(base)
    try:
        return KernelReader(CpuNetwork(base, config, layers_for(config, 1)))
    except (OSError, ValueError) as error:
        raise RequestError(
            f"the C kernels cannot read for this run ({error}); read without them: omit --kernels, or say --no-kernels"
        ) from error
