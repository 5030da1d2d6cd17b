"""Where documents are in the workspace's folders."""

from pathlib import Path

from mercury_lsp.documents.roots import Roots


def test_a_path_through_what_a_folders_link_leads_to_is_named_through_the_link(tmp_path: Path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    roots = Roots([link])
    assert roots.named(real / "a.py") == roots.named(link / "a.py") == (link / "a.py", link)
    assert roots.named(tmp_path / "a.py") is None
    assert Roots([link, real]).named(real / "a.py") == (real / "a.py", real)
