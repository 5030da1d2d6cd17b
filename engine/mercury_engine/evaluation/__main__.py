"""`python -m mercury_engine.evaluation {replay,infill,situations,edits,formats,calibration,mixture,unpack}`."""

import sys

from mercury_engine.subcommands import run

SUITES = {
    name: name for name in ("replay", "infill", "situations", "edits", "formats", "calibration", "mixture", "unpack")
}

if __name__ == "__main__":
    sys.exit(run("mercury_engine.evaluation", SUITES))
