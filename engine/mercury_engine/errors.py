"""Errors of the engine. Each message says how to fix the problem.

MercuryError
├── ModelError             the model folder cannot be used
│   ├── ModelNotFound      no such folder or name
│   └── ModelCorrupt       files are damaged or do not belong together
├── DeviceError            the device cannot run the request now
├── Cancelled              the request was superseded; not a fault
└── RequestError           the request asks for something the model cannot do
"""


class MercuryError(Exception):
    """Base of every error the engine raises on purpose."""


class ModelError(MercuryError):
    """The model folder cannot be used."""


class ModelNotFound(ModelError):
    """No model of that name and no folder of that path."""


class ModelCorrupt(ModelError):
    """The model's files are damaged or do not belong together."""


class DeviceError(MercuryError):
    """The device cannot run the request now, for example because its memory is full; the next one may succeed."""


class Cancelled(MercuryError):
    """The request's cancel flag was set; nobody is waiting for the answer."""


class RequestError(MercuryError):
    """The request asks for something the model cannot do."""
