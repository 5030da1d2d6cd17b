"""`python -m mercury_lab.evaluation COMMAND`: replay, infill, humaneval, doctests, situations, edits, commits,
commit-list, cursor-list, formats, calibration or lengths.
"""

import sys

from mercury_lab.subcommands import run

SUITE_MODULES = {
    "replay": "evaluation.replay",
    "infill": "evaluation.infill",
    "humaneval": "evaluation.humaneval",
    "doctests": "evaluation.doctests",
    "situations": "editing.situations",
    "cursor-list": "commit_edits.cursor_list",
    "edits": "editing.edits",
    "commits": "commit_edits.run",
    "commit-list": "commit_edits.build",
    "formats": "evaluation.formats",
    "calibration": "evaluation.calibration",
    "lengths": "evaluation.lengths",
}

if __name__ == "__main__":
    sys.exit(run("evaluation", SUITE_MODULES))
