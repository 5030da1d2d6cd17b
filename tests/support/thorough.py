"""How many real gaps tests fill that compare two ways of filling them."""

import os

GAPS = int(os.environ.get("MERCURY_GAPS", "0"))
"""What `make interpreted` asks for; 0 in `make test`, where each test has a number as small as its claim allows."""
