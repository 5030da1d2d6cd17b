"""A corpus packed into one file is the same corpus, or says why it is not."""

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mercury_lab.training.data import corpus, pack, shard
from mercury_lab.training.data.contamination import Fingerprints
from mercury_lab.training.data.corpus import Corpus, SourceFile
from mercury_lab.training.data.shard import MAGIC, ShardCorrupt, Speller
from mercury_lab.training.data.sources import HeldOut, PackageSource, SourceError
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from tests.support import tiny

TOKENIZER = tiny.tokenizer()
HELD = " ".join(f"held{n}" for n in range(100))


def blind() -> Tokenizer:
    """A byte-level tokenizer that, like SmolLM2's, lacks a byte: here that of the letter Z."""
    letters = sorted(set(pre_tokenizers.ByteLevel.alphabet()) - {"Z"})
    tokenizer = Tokenizer(models.BPE(vocab={letter: n for n, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def file(name: str, text: str, language: str = "python") -> SourceFile:
    return SourceFile(f"toy/{name}", "toy", language, text)


def whole(files: list[SourceFile]) -> Corpus:
    built = Corpus(known=Fingerprints.of([HELD]))
    built.add(PackageSource("pypi", "toy", "1.0", "MIT"), files)
    return built


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


FILES = [file("a.py", "import os\n\n\nprint(os.name)\n" * 9), file("b.rs", "fn main() { let x = 'é'; }\n", "rust")]
PACKED = pack.pack(whole(FILES), TOKENIZER, 10**6)


def noise(seed: int, size: int) -> str:
    """Text that hardly compresses."""
    return "".join(random.Random(seed).choices("abcdefghijklmnopqrstuvwxyz 0123456789\n", k=size))


def test_a_packed_folder_reads_like_the_folder(tmp_path: Path):
    whole(FILES).write(tmp_path / "folder")
    options = [
        "--corpus",
        tmp_path / "folder",
        "--out",
        tmp_path / "new" / "x.shard",
        "--tokenizer",
        tokenizer(tmp_path),
    ]
    assert pack.main([str(option) for option in options]) == 0
    packed = tmp_path / "new" / "x.shard"
    assert list(corpus.read_files(packed)) == list(corpus.read_files(tmp_path / "folder")) == FILES
    ours, theirs = corpus.read_manifest(packed), corpus.read_manifest(tmp_path / "folder")
    assert [p["name"] for p in ours["packages"]] == [p["name"] for p in theirs["packages"]] == ["toy"]
    assert {n: t["bytes"] for n, t in ours["languages"].items()} == {
        n: t["bytes"] for n, t in theirs["languages"].items()
    }
    assert [path.name for path in packed.parent.iterdir()] == ["x.shard"]


def tokenizer(folder: Path) -> Path:
    TOKENIZER.save(str(folder / "tokenizer.json"))
    return folder


@settings(max_examples=60)
@given(st.lists(st.text(max_size=200), max_size=5))
def test_any_text_comes_back_unchanged(tmp_path_factory, texts):
    files = [file(f"{n}.py", text) for n, text in enumerate(texts)]
    path = put(tmp_path_factory.mktemp("shard") / "x.shard", pack.pack(whole(files), TOKENIZER, 10**6))
    assert list(corpus.read_files(path)) == files


def test_a_text_that_the_tokens_cannot_spell_is_stored_as_it_is(tmp_path: Path):
    files = [file("a.py", "lower case\n"), file("b.py", "Zebra Z\n"), file("c.py", "more\n")]
    speller = Speller(blind())
    assert [speller.spell(each.text) is None for each in files] == [False, True, False]
    path = put(tmp_path / "x.shard", pack.pack(whole(files), blind(), 10**6))
    assert shard.read_section(path, "plain") == b"Zebra Z\n"
    assert list(corpus.read_files(path)) == files


@given(st.lists(st.integers(0, TOKENIZER.get_vocab_size() - 1), max_size=60))
def test_tokens_spell_what_the_tokenizer_reads_in_them(ids):
    assert Speller(TOKENIZER).read(np.array(ids, np.uint16)) == TOKENIZER.decode(ids, skip_special_tokens=False)


def test_the_same_corpus_gives_the_same_bytes():
    assert pack.pack(whole(FILES), TOKENIZER, 10**6) == PACKED
    assert pack.pack(whole(FILES[:1]), TOKENIZER, 10**6) != PACKED


def test_what_does_not_fit_is_cut_to_a_balanced_sample_of_whole_files(tmp_path: Path):
    files = [file(f"{n}.py", noise(n, 4_000)) for n in range(30)]
    files += [file(f"{n}.go", noise(100 + n, 4_000), "go") for n in range(30)]
    files += [file(f"{n}.lua", noise(200 + n, 1_000), "lua") for n in range(2)]
    everything = len(pack.pack(whole(files), TOKENIZER, 10**7))
    limit = everything // 2
    path = put(tmp_path / "x.shard", pack.pack(whole(files), TOKENIZER, limit))
    assert 0.8 * limit < path.stat().st_size <= limit
    read = list(corpus.read_files(path))
    assert set(read) < set(files)
    totals = corpus.read_manifest(path)["languages"]
    assert totals["lua"]["files"] == 2
    assert abs(totals["python"]["bytes"] - totals["go"]["bytes"] - totals["lua"]["bytes"]) <= 8_000
    assert corpus.read_manifest(path)["of"]["go"]["files"] == 30


@given(
    st.dictionaries(st.sampled_from(["python", "go", "lua", "c", "rust"]), st.integers(0, 1_000)), st.integers(1, 4_000)
)
def test_shares_fill_the_room_and_no_language_gets_less_than_an_even_part_that_it_needs(sizes, room):
    given_ = pack.shares(sizes, room)
    assert sum(given_.values()) == pytest.approx(min(room, sum(sizes.values())))
    assert all(given_[language] <= size for language, size in sizes.items())
    others = [language for language in sizes if language != "python"]
    assert given_["python"] >= min(sizes.get("python", 0), room / 2) - 1e-9
    assert all(given_[n] >= min(sizes[n], (room - given_["python"]) / len(others)) - 1e-9 for n in others)


def test_a_limit_below_what_any_shard_needs_is_told():
    with pytest.raises(SourceError, match="--limit-mb"):
        pack.pack(whole(FILES), TOKENIZER, 100)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\x1f\x8b not ours", b"x" * 4_000, MAGIC.replace(b"1", b"2") + PACKED]
)
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes):
    with pytest.raises(ShardCorrupt, match="is not a corpus shard"):
        list(corpus.read_files(put(tmp_path / "x.shard", content)))


@pytest.mark.parametrize("size", [len(MAGIC), len(MAGIC) + 3, len(MAGIC) + 40, len(PACKED) // 2, len(PACKED) - 1])
def test_a_shard_cut_short_is_refused(tmp_path: Path, size: int):
    with pytest.raises(ShardCorrupt, match="copy it again"):
        list(corpus.read_files(put(tmp_path / "x.shard", PACKED[:size])))


@settings(max_examples=60)
@given(place=st.integers(0, len(PACKED) - 1), change=st.integers(1, 255))
def test_no_changed_byte_goes_unnoticed(tmp_path_factory, place, change):
    changed = bytearray(PACKED)
    changed[place] ^= change
    path = put(tmp_path_factory.mktemp("shard") / "x.shard", bytes(changed))
    with pytest.raises(ShardCorrupt):
        assert corpus.read_fingerprints(path) and list(corpus.read_files(path))


def test_a_corpus_with_a_held_out_package_is_not_packed(tmp_path: Path):
    Corpus([SourceFile("x/networkx/a.py", "toy", "python", "a = 1\n")]).write(tmp_path / "folder")
    with pytest.raises(HeldOut, match="networkx"):
        pack.main(["--corpus", str(tmp_path / "folder"), "--out", str(tmp_path / "x.shard")])
    assert not (tmp_path / "x.shard").exists()


def test_held_out_text_in_a_shard_is_refused_where_it_is_read(tmp_path: Path):
    path = put(tmp_path / "x.shard", pack.pack(whole([*FILES, file("c.py", HELD)]), TOKENIZER, 10**6))
    with pytest.raises(HeldOut, match="toy/c.py"):
        corpus.assert_no_held_out(path)
    corpus.assert_no_held_out(put(tmp_path / "clean.shard", PACKED))
