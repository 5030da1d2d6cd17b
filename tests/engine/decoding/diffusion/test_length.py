"""The search for the number of slots."""

from collections.abc import Callable

import pytest
from mercury_engine.decoding.diffusion import length
from mercury_engine.decoding.diffusion.length import LengthBias


def searched(
    confidence: Callable[[int], float], first: int = 8, most: int = 64, patience: int = 2
) -> tuple[int, list[list[int]]]:
    """The length found, and the lengths of every pass, where `confidence` is a function of the length."""
    passes = list[list[int]]()

    def sure(lengths):
        yield from ()
        passes.append([*lengths])
        return [*map(confidence, lengths)]

    with pytest.raises(StopIteration) as end:
        next(length.searched(sure, LengthBias(), first, most, patience))
    return end.value.value, passes


@pytest.mark.parametrize("true_length", [2, 5, 8, 11, 30])
def test_the_length_that_is_surer_than_usual_is_found(true_length):
    bias = LengthBias()
    found, _ = searched(lambda n: bias.at(n) * (2 - abs(n - true_length) / 64))
    assert found == true_length


def test_it_gives_up_after_a_few_worse_lengths_in_each_direction():
    bias = LengthBias()
    found, passes = searched(lambda n: bias.at(n) * (2 if n == 8 else 1), patience=4)
    assert found == 8
    assert passes == [[8, 4, 5, 6, 7, 9, 10, 11, 12]]


def test_lengths_that_are_tried_in_any_case_share_a_pass():
    bias = LengthBias()
    sure = {9: 2, 11: 3, 13: 4}
    found, passes = searched(lambda n: bias.at(n) * sure.get(n, 1), most=15)
    assert found == 13
    assert passes == [[8, 6, 7, 9, 10], [11], [12, 13], [14, 15]]
