"""Errors of the engine. Each message names the mend.

MercuryError
├── ModelError             the model folder cannot be used
│   ├── ModelNotFound      no such folder or name
│   └── ModelCorrupt       files are damaged or do not fit together
├── DeviceError            the device cannot do it now
├── Cancelled              the request was superseded; not a fault
└── RequestError           the request asks for what the model cannot do
"""


class MercuryError(Exception):
    """Base of every error the engine raises on purpose."""


class ModelError(MercuryError):
    """The model folder cannot be used."""


class ModelNotFound(ModelError):
    """No model of that name and no folder of that path."""


class ModelCorrupt(ModelError):
    """The model's files are damaged or do not fit together."""


class DeviceError(MercuryError):
    """The device cannot do it now, as when its memory is full; the next request may succeed."""


class Cancelled(MercuryError):
    """The request's cancel flag was set; nobody waits for the answer."""


class RequestError(MercuryError):
    """The request asks for what the model cannot do."""
