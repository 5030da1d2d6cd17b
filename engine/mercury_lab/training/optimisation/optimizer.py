"""Optimise with AdamW alone, or Muon for the adapter's matrices and AdamW for the rest; states go by parameter name."""

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

OptimizerName = Literal["adamw", "muon"]

WEIGHT_DECAY = 0.01


class Optimizer:
    """One or two torch optimisers that step together."""

    def __init__(self, parameters: Mapping[str, Tensor], kind: OptimizerName = "adamw") -> None:
        names = [n for n, p in parameters.items() if kind == "muon" and p.ndim == 2 and n.startswith("layers.")]
        others = [n for n in parameters if n not in names]
        on_gpu = any(p.is_cuda for p in parameters.values())
        self._parts: list[tuple[list[str], torch.optim.Optimizer]] = [
            (others, torch.optim.AdamW([parameters[n] for n in others], weight_decay=WEIGHT_DECAY, fused=on_gpu))
        ]
        if names:
            matrices = [parameters[n] for n in names]
            muon = torch.optim.Muon(matrices, weight_decay=WEIGHT_DECAY, adjust_lr_fn="match_rms_adamw")
            self._parts.append((names, muon))

    def step(self, rate: float) -> None:
        for _, part in self._parts:
            for group in part.param_groups:
                group["lr"] = rate
            part.step()

    def zero_grad(self) -> None:
        for _, part in self._parts:
            part.zero_grad()

    def state(self) -> dict[str, Any]:
        """The optimiser state of every parameter, by name."""
        return {
            name: part.state_dict()["state"].get(number, {})
            for names, part in self._parts
            for number, name in enumerate(names)
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Resume from a state; parameters without one, or with another optimiser's, start without state."""
        for names, part in self._parts:
            own = "momentum_buffer" if isinstance(part, torch.optim.Muon) else "exp_avg"
            known = {n: state[name] for n, name in enumerate(names) if own in state.get(name, {})}
            part.load_state_dict({"state": known, "param_groups": part.state_dict()["param_groups"]})
