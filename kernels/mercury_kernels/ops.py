"""Public operations. Every one is its torch reference for now; a faster twin is dispatched here, in one line."""

from mercury_kernels.reference import (
    Segment,
    causal_attention,
    rms_norm,
    rotary_angles,
    rotate,
    segmented_attention,
    swiglu,
)

__all__ = ["Segment", "causal_attention", "rms_norm", "rotary_angles", "rotate", "segmented_attention", "swiglu"]
