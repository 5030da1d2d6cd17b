"""Errors of the engine. Each message says how to fix the problem.

MercuryError
├── ModelError             the model folder cannot be used
│   ├── ModelNotFound      no such folder or name
│   └── ModelCorrupt       files are damaged or do not belong together
├── DownloadError          a model's files cannot be fetched
│   └── DownloadCorrupt    a fetched file is damaged or altered
├── StorageError           the disk is full, or must not be written
├── DeviceError            the device cannot run the request now
├── Cancelled              the request was superseded; not a fault
└── RequestError           the request asks for something the model cannot do
    └── PromptTooLong      the prompt has more tokens than the model reads
"""


class MercuryError(Exception):
    """Base of every error the engine raises on purpose."""


class ModelError(MercuryError):
    """The model folder cannot be used."""


class ModelNotFound(ModelError):
    """No model of that name and no folder of that path."""


class ModelCorrupt(ModelError):
    """The model's files are damaged or do not belong together."""


class DownloadError(MercuryError):
    """The files of a model cannot be fetched."""


class DownloadCorrupt(DownloadError):
    """A fetched file is not the one that was published."""


class StorageError(MercuryError):
    """The disk is full, or must not be written."""


class DeviceError(MercuryError):
    """The device cannot run the request now, for example because its memory is full; the next one may succeed."""


class Cancelled(MercuryError):
    """The request's cancel flag was set; nobody is waiting for the answer."""


class RequestError(MercuryError):
    """The request asks for something the model cannot do."""


class PromptTooLong(RequestError):
    """The prompt has more tokens than the model reads."""
