"""Make synthetic edits on syntax trees, which the edit adapter learns from.

Each kind of edit (`rename.py` and others) plans all sites of one edit; some sites become the edit history and the next
one the target (`stage.py`); `examples/edits.py` draws them from files.
"""
