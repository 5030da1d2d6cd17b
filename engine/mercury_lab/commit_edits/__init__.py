"""Next edits of real commits: two changes of a commit are made, and the rest of it is what an editor should offer.

The list of positions (positions.json) has repositories, commits, licences and line numbers, never a text: `build`
makes it from a folder of clones, and `run` reads the texts from the same clones.
"""
