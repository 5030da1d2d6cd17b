"""Time steps and fills of the device loop and its baselines at one point."""

from collections.abc import Callable

import torch
from mercury_engine.cuda.graphs import GraphDenoiser
from mercury_engine.models.canvas_chunks import CanvasChunk
from mercury_engine.models.decoder import TorchDecoder
from mercury_kernels import ops

from on_gpu.baselines import LeftToRight, Plain
from on_gpu.clock import Clock, spread
from on_gpu.shapes import Point, sides

FILL_STEPS = 4
"""Steps of a measured fill, one chunk; how many steps real text needs depends on the model, not the machine."""


def pages(points: list[Point], size: int) -> int:
    """Pages that the largest point needs: two sides and a canvas for every session, and scrap."""
    return 2 + max(p.sessions * (p.context // size + 3 + -(-(p.slots + 1) // size)) for p in points)


def filler(made: TorchDecoder, points: list[Point]) -> GraphDenoiser:
    size = 64 if made.device.type == "cuda" else 16
    return GraphDenoiser(made, pages=pages(points, size), page_size=size, chunk=FILL_STEPS, positions=8192)


class Measured:
    """One model at one point; contexts are made once and shared by all measurements."""

    def __init__(self, made: TorchDecoder, point: Point, clock: Clock, seconds: float) -> None:
        self.made, self.point, self.clock, self.seconds = made, point, clock, seconds
        self.contexts = sides(made, point)

    def jobs(self, fill: GraphDenoiser, most: int = FILL_STEPS) -> list[CanvasChunk]:
        masks = [self.made.config.mask_id] * self.point.slots
        return [CanvasChunk(fill, 7, masks, 1, [before], [after], 0.0, most) for before, after in self.contexts]

    @torch.inference_mode()
    def ours(self, fill: GraphDenoiser) -> dict[str, object]:
        """The device loop: one step inside its chunk, and a whole fill as its caller sees it."""
        jobs = self.jobs(fill)
        done = fill.fill(jobs)
        assert all(one.done and one.steps == FILL_STEPS for one in done)
        bucket = fill.bucket(jobs)
        whole = self.clock.each(lambda: fill.captures.run(bucket), self.seconds)
        fills = self.clock.host(lambda: fill.fill(jobs), self.seconds)
        return {"step": spread([t / FILL_STEPS for t in whole]), "fill": spread(fills), "steps": FILL_STEPS}

    def library(self) -> dict[str, object]:
        """The device loop with cuBLAS products and separate kernels, which large batches use."""
        few, ops.FUSED_ROWS = ops.FUSED_ROWS, 0
        try:
            return self.ours(filler(self.made, [self.point]))
        finally:
            ops.FUSED_ROWS = few

    def eager(self, fill: GraphDenoiser) -> dict[str, object]:
        return {"step": spread(self.clock.each(self._plain(fill).step, self.seconds, most=30))}

    def compiled(self, fill: GraphDenoiser) -> dict[str, object]:
        plain = self._plain(fill)
        plain.compile("inductor" if self.clock.device.type == "cuda" else "eager")
        plain.step()
        return {"step": spread(self.clock.each(self.clock.graph(plain.step), self.seconds))}

    def left_to_right(self, fill: GraphDenoiser) -> dict[str, object]:
        """One token per step, one step per slot."""
        decoder = LeftToRight(self.made, fill.weights, self.contexts, self.point)
        step = self.clock.graph(decoder.step)

        def decode() -> None:
            decoder.restart()
            for _ in range(self.point.slots):
                step()

        whole = self.clock.host(decode, self.seconds, most=50)
        return {"step": spread([t / self.point.slots for t in whole]), "fill": spread(whole), "steps": self.point.slots}

    def agreement(self, fill: GraphDenoiser) -> float:
        """Share of slots for which the kernels and the plain model choose the same token in the first step."""
        found = torch.tensor([one.ids for one in fill.fill(self.jobs(fill, 1))])
        right = self._plain(fill).choose().token.view(self.point.sessions, -1)[:, :-1].cpu()
        end = self.made.config.end_id
        right = torch.where((right == end).cumsum(-1) > 0, end, right)
        return float((found == right).float().mean())

    def _plain(self, fill: GraphDenoiser) -> Plain:
        return Plain(self.made, fill.weights, self.contexts, self.point)


def attempt(work: Callable[[], object]) -> object:
    """The work's result, or the error instead: one failed comparison must not end the run."""
    try:
        return work()
    except Exception as error:
        torch.cuda.empty_cache()
        return {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
