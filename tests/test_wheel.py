"""What the wheel holds."""

from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[1]


def test_training_and_evaluation_stay_out_of_the_wheel():
    inside = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert {path.split("/")[0] for path in inside} == {"mercury_lsp", "mercury_engine", "mercury_kernels"}
    assert not [path for path in inside if "training" in path or "evaluation" in path]


def test_the_wheel_holds_a_diffusion_model_with_what_denoises():
    inside = {Path(file.distribution_path) for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    folder = Path("mercury_engine/assets/mercury-135m-diffusion")
    assert {path.name for path in inside if path.parent == folder} >= {"adapter.safetensors", "config.json"}
