"""The graph denoiser unmasks the tokens of the plain loop, within its buckets and memory."""

from dataclasses import replace

import pytest
import torch
from mercury_engine.cuda import graphs
from mercury_engine.cuda.graphs import GraphDenoiser
from mercury_engine.decoding.diffusion.unmasking import choose_by_entropy
from mercury_engine.errors import RequestError
from mercury_engine.models import decoder_weights
from mercury_engine.models.canvas_chunks import CanvasChunk
from mercury_engine.models.network import join
from mercury_kernels import attention, commit, head, linear, ops, qkv
from mercury_kernels.launch import INTERPRETED
from mercury_lab.training.optimisation.prefill import read_alone, read_start

from tests.support import tiny


def made_on(device):
    """The reader, and the writer as a separate network with merged weights."""
    return tiny.network().to(device), decoder_weights.merged_writer(tiny.network().to(device))


@pytest.fixture(scope="module")
def networks():
    """On the CPU, where the host can count steps."""
    return made_on("cpu")


@pytest.fixture
def placed(device):
    """On the device the kernels are tested on."""
    return made_on(device)


def filler(networks, **changes):
    return GraphDenoiser(networks[1], **({"pages": 40, "positions": 300, "page_size": 16} | changes))


def sides(network, seed, before=21, after=9):
    torch.manual_seed(seed)
    device = network.device
    with torch.inference_mode():
        far = [read_start(network, 0), *read_alone(network, [tuple(torch.randint(1, 500, (before,)).tolist())], 0)]
        (suffix,) = read_alone(network, [tuple(torch.randint(1, 500, (after,)).tolist())], 0)
        left = [network.rotated(b, at) for b, at in zip(far, (-before - 1, -before), strict=True)]
        block = network.read(torch.randint(1, 500, (1, 5)).to(device), [join(left)])[1]
        return [join(left), network.rotated(block, 0)], [network.rotated(suffix, 0)]


def forbid(made, tokens):
    """The number of a mask of these tokens."""
    row = torch.zeros(made.token_masks.table.shape[1], dtype=torch.bool)
    row[tokens] = True
    return made.token_masks.number("these", row.numpy)


def job(network, seed=1, slots=11, known=(), **changes):
    before, after = sides(network, seed)
    ids = [*known, *[network.config.mask_id] * (slots - len(known))]
    given = {"last": 7, "ids": ids, "ends": 5, "before": before, "after": after, "bound": 3.0}
    return CanvasChunk(None, **(given | changes))


def plain(writer, job, banned=()):
    """The reference: one canvas, whole logits, the engine's rule."""
    config, device = writer.config, writer.device
    ids, steps = torch.tensor(job.ids, device=device), 0
    banned = torch.tensor(banned, dtype=torch.long, device=device)
    with torch.inference_mode():
        while bool((masked := ids == config.mask_id).any()):
            steps += 1
            rows = torch.cat((ids.new_tensor([job.last]), ids))[None]
            hidden = writer.write(rows, job.before, job.after, ids.new_tensor([job.ends]))
            logp = writer.writer_logits(hidden[0, :-1]).index_fill(1, banned, -1e30)
            logp = logp.log_softmax(-1)
            entropy = -(logp.exp() * logp.clamp_min(-1e4)).sum(-1)
            bound = 1e9 if steps >= job.most else job.bound
            chosen = choose_by_entropy(entropy.cpu().numpy(), masked.cpu().numpy(), bound)
            ids = torch.where(torch.as_tensor(chosen, device=device), logp.argmax(-1), ids)
            if bool((ids == config.end_id).any()):
                ids[int((ids == config.end_id).nonzero()[0]) :] = config.end_id
    return ids.tolist(), steps


@pytest.mark.parametrize("bound", [0.0, 2.0, 6.0, 30.0])
def test_fills_equal_the_plain_loop_token_for_token(placed, bound):
    made = filler(placed)
    for seed in range(3):
        one = job(placed[0], seed, slots=5 + 4 * seed, bound=bound)
        (found,) = made.fill([one])
        assert (found.ids, found.steps) == plain(placed[1], one)
        assert found.done
        assert all(0 < probability <= 1 for probability in found.probabilities)


def test_the_kernels_together_settle_what_the_plain_loop_does(networks, monkeypatch):
    """With the kernels, in the interpreter, in place of their twins."""
    if not INTERPRETED.value:
        pytest.skip("on a GPU every fill is made of kernels")
    monkeypatch.setattr(ops, "project_qkv", qkv.project_qkv)
    monkeypatch.setattr(ops, "paged_attention", attention.paged_attention)
    monkeypatch.setattr(ops, "linear", linear.linear)
    monkeypatch.setattr(ops, "choices", head.choices)
    monkeypatch.setattr(ops, "commit", commit.commit)
    made, one = filler(networks), job(networks[0], slots=6, bound=8.0)
    (found,) = made.fill([one])
    assert found.steps > 1
    assert (found.ids, found.steps) == plain(networks[1], one)


def test_an_end_marker_hides_what_is_behind_it(placed):
    made, end = filler(placed), placed[0].config.end_id
    only_end = forbid(made, torch.arange(placed[0].config.vocab_size))
    one = job(placed[0], slots=9, bound=0.0)
    ids = [3, 4, *one.ids[2:5], 5, *one.ids[6:]]  # a token that is known, but behind the end
    (found,) = made.fill([replace(one, ids=ids, bound=1e9, first_mask=only_end)])
    assert found.ids == [3, 4, *[end] * 7]
    assert (found.steps, found.done) == (1, True)


def test_known_tokens_stay_and_masks_bind_their_slots(placed):
    one = job(placed[0], known=(3, 4), slots=8)
    made = filler(placed)
    (free,) = made.fill([one])
    assert free.ids[:2] == [3, 4]
    assert free.probabilities[:2] == [1.0, 1.0]
    rule = forbid(made, torch.tensor([free.ids[2]]))
    (bound,) = made.fill([replace(one, bound=0.0, first_mask=rule)])
    assert bound.ids[2] != free.ids[2]


def test_canvases_in_a_batch_equal_each_alone(placed):
    made = filler(placed, pages=80)
    jobs = [job(placed[0], seed, slots=3 + 4 * seed) for seed in range(3)]
    together = made.fill(jobs)
    assert [(f.ids, f.steps) for f in together] == [plain(placed[1], one) for one in jobs]


def test_steps_are_bounded_and_the_last_one_settles_the_rest(networks):
    one = job(networks[0], slots=10, bound=0.0, most=3)
    (found,) = filler(networks).fill([one])
    assert (found.ids, found.steps) == plain(networks[1], one)
    assert (found.steps, found.done) == (3, True)


def count_steps(made):
    seen = []
    original = made.step
    made.step = lambda buffers: (seen.append(1), original(buffers))
    return seen


def test_a_chunk_makes_a_few_steps_and_the_next_one_goes_on(networks):
    made = filler(networks, chunk=3)
    one = job(networks[0], slots=12, bound=0.0)
    seen, (first,) = count_steps(made), made.run_chunk([one])
    assert len(seen) == first.steps == 3
    assert (first.done, first.ids.count(networks[0].config.mask_id)) == (False, 9)
    (second,) = made.run_chunk([replace(one, ids=first.ids)])
    (whole,) = made.fill([one])
    assert [token for token in second.ids if token != networks[0].config.mask_id] == [
        token for token, kept in zip(whole.ids, second.ids, strict=True) if kept != networks[0].config.mask_id
    ]


def test_buckets_are_prepared_once_and_bounded(networks):
    made = filler(networks, most=2)
    for slots in (3, 8, 5, 12, 20, 4):
        made.fill([job(networks[0], slots=slots)])
    assert len(made.captures) == 2
    assert made.captures.captured == 4  # 8, 16, 32, and 8 again after it was dropped
    assert set(made._buffers) == set(made.captures._graphs)


def test_sides_are_copied_once_and_make_room_when_memory_is_short(networks):
    made = filler(networks, pages=1 + 1 + 6)  # scrap, the canvas, two contexts of three or four pages
    writes, original = [], made.pool.write
    made.pool.write = lambda *arguments: (writes.append(1), original(*arguments))
    jobs = [job(networks[0], seed, slots=8) for seed in range(3)]
    expected = [plain(networks[1], one) for one in jobs]
    for _ in range(2):
        assert [(f.ids, f.steps) for one in jobs[:1] for f in made.fill([one])] == expected[:1]
    assert len(writes) == 3
    for one, right in zip(jobs, expected, strict=True):
        (found,) = made.fill([one])
        assert (found.ids, found.steps) == right
    with pytest.raises(RequestError, match="full"):
        made.fill(jobs)


def test_jobs_beyond_the_buckets_are_refused_with_the_fix(networks):
    made = filler(networks)
    with pytest.raises(RequestError, match="send less"):
        made.fill([job(networks[0], slots=97)])
    with pytest.raises(RequestError, match="far blocks"):
        made.fill([job(networks[0], ends=295)])


def test_a_chunk_takes_no_more_steps_than_slots_are_left(networks, monkeypatch):
    left, original = [], GraphDenoiser._run_chunk
    monkeypatch.setattr(
        GraphDenoiser, "_run_chunk", lambda self, *given: (left.append(given[-1]), original(self, *given))[1]
    )
    made = filler(networks, chunk=4)
    made.fill([job(networks[0], slots=6, bound=0.0)])
    assert left == [6, 2]
    left.clear()
    made.fill([job(networks[0], slots=6, bound=0.0, most=3)])
    assert left == [3]
    left.clear()
    drafted = job(networks[0], known=(3,), slots=3, bound=0.0)
    made.fill([replace(drafted, drafts=[0])])
    assert left[0] == len(drafted.ids) + 1  # the first step only judges


def test_after_preparing_no_fill_waits_for_a_capture(networks):
    made = filler(networks)
    made.prepare_all()
    captured = made.captures.captured
    assert captured == len(made.captures) == len(graphs.SLOT_BUCKETS) * len(graphs.PAGE_BUCKETS)
    for slots in (3, 20, 90):
        made.fill([job(networks[0], slots=slots)])
    assert made.captures.captured == captured
