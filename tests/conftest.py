"""Servers that tests start keep the model in their own process, but for those that are about sharing it."""

import os

os.environ["MERCURY_IN_PROCESS"] = "1"
