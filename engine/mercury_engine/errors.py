"""Errors of the engine. Each message says how to fix the problem.

MercuryError
├── ModelError             the model folder cannot be used
│   ├── ModelNotFound      no such folder or name
│   └── ModelCorrupt       files are damaged or do not belong together
├── DownloadError          a model's files cannot be fetched
│   └── DownloadCorrupt    a fetched file is damaged or altered
├── StorageError           the disk is full, or must not be written
├── DeviceError            the device cannot run the request now, but perhaps the next one: its memory is full
├── Cancelled              the request's cancel flag was set, and nobody waits for the answer; not a fault
└── RequestError           the request asks for something the model cannot do
    └── PromptTooLong      the prompt has more tokens than the model reads
"""


class MercuryError(Exception):
    """Base of every error that the engine raises on purpose."""


class ModelError(MercuryError): ...


class ModelNotFound(ModelError): ...


class ModelCorrupt(ModelError): ...


class DownloadError(MercuryError): ...


class DownloadCorrupt(DownloadError): ...


class StorageError(MercuryError): ...


class DeviceError(MercuryError): ...


class Cancelled(MercuryError): ...


class RequestError(MercuryError): ...


class PromptTooLong(RequestError): ...
