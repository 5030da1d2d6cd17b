"""What an editor and its hub have said, in memory that outlives the hub, so that another one can go on.

The process that the editor started makes two files in memory and keeps them open; the hub writes to one of them what
it reads and what it is about to write. A file is a header and records:

    header   generation, time and number of the last restarts
    record   kind, length, data; of kind
             <  bytes from the editor: the system moves them from the pipe into the file, so none is lost on the way
             >  bytes for the editor: the system moves them from the file into the pipe, and with them the file's
                position, which therefore says what was written
             S  a session as JSON, the first record of a file that replaces a long one

The file of the higher generation counts.
"""

import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from threading import Lock
from typing import Any

from mercury_lsp.transport.long_texts import encoded

_HEADER = Struct("<QdQ")

_RECORD = Struct("<cQ")

FROM_EDITOR, FOR_EDITOR, STATE, NOT_NOTED = b"<", b">", b"S", b"\0"

MAX_BYTES = 4 * 2**20
"""Size at which a file is replaced by one with the session's state, unless that is nearly as long."""

READ_BYTES = 65536

RECENT_SECONDS = 60.0
"""How long a restart counts as recent."""


@dataclass(frozen=True, slots=True)
class Record:
    """A piece of what was said."""

    kind: bytes
    data: bytes


class Journal:
    """Two files in memory; for one editor."""

    def __init__(self, descriptors: tuple[int, int]):
        self.descriptors = descriptors
        self._lock = Lock()
        """Guards the end of the file."""
        headers = [_HEADER.unpack(os.pread(each, _HEADER.size, 0).ljust(_HEADER.size, b"\0")) for each in descriptors]
        self._live = 0 if headers[0][0] >= headers[1][0] else 1
        self._generation, self._restarted, self._restarts = headers[self._live]
        self._state_bytes = 0
        self._end = _HEADER.size
        for record in self.records():
            self._end += _RECORD.size + len(record.data)
        os.ftruncate(self._file, self._end)  # there may be a part of a record

    @classmethod
    def make(cls) -> "Journal | None":
        """An empty one; None where the system has no files in memory."""
        if sys.platform != "linux":
            return None
        try:
            first, second = (os.memfd_create(f"mercury-{number}") for number in (0, 1))
        except OSError:
            return None
        os.pwrite(first, _HEADER.pack(1, 0.0, 0), 0)
        return cls((first, second))

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said."""
        return self._end == _HEADER.size

    def close(self) -> None:
        """Close our descriptors of the files."""
        for each in self.descriptors:
            os.close(each)

    def count_restart(self) -> int:
        """Note a restart; the number of recent ones, with this one."""
        now = time.time()
        self._restarts = self._restarts + 1 if abs(now - self._restarted) < RECENT_SECONDS else 1
        self._restarted = now
        self._write_header()
        return self._restarts

    def take(self, descriptor: int) -> bytes:
        """Read from the editor: what there is, empty at the end. Raises OSError."""
        with self._lock:
            at = self._end + _RECORD.size
            if (size := self._moved(descriptor, at)) is None:
                data = os.read(descriptor, READ_BYTES)
                self._append(FROM_EDITOR, data)
                return data
            if not size:
                return b""
            os.pwrite(self._file, _RECORD.pack(FROM_EDITOR, size), self._end)
            self._end = at + size
            return os.pread(self._file, size, at)

    def note_output(self, data: bytes) -> None:
        """Note bytes for the editor, which `send` is to write. All earlier ones were written."""
        with self._lock:
            start = self._end + _RECORD.size
            self._append(FOR_EDITOR, data)
            os.lseek(self._file, start, os.SEEK_SET)

    def send(self, descriptor: int, most: int) -> int:
        """Write at most so many of the noted bytes; returns how many. Raises OSError."""
        try:
            return os.sendfile(descriptor, self._file, None, most)
        except OSError as error:
            if error.errno != errno.EINVAL:  # some terminals, and files that are appended to
                raise
        at = os.lseek(self._file, 0, os.SEEK_CUR)
        size = os.write(descriptor, os.pread(self._file, most, at))
        os.lseek(self._file, at + size, os.SEEK_SET)
        return size

    @property
    def is_long(self) -> bool:
        """Whether the session's state should replace it."""
        return self._end > max(MAX_BYTES, 3 * self._state_bytes)

    def replace(self, state: Any) -> None:
        """Begin the other file with a session's state. All that was noted must be part of it, and written."""
        data = encoded(state)
        with self._lock:
            old, self._live = self._file, 1 - self._live
            os.ftruncate(self._file, 0)
            self._end = _HEADER.size
            self._append(STATE, data)
            os.lseek(self._file, self._end, os.SEEK_SET)
            self._generation, self._state_bytes = self._generation + 1, len(data)
            self._write_header()  # from here on it counts
            os.ftruncate(old, 0)

    def records(self) -> Iterator[Record]:
        """What was noted. Bytes from the editor that were moved and not noted are the last record."""
        at, size = _HEADER.size, os.fstat(self._file).st_size
        while at + _RECORD.size <= size:
            kind, length = _RECORD.unpack(os.pread(self._file, _RECORD.size, at))
            at += _RECORD.size
            if kind == NOT_NOTED:
                kind, length = FROM_EDITOR, size - at
                os.pwrite(self._file, _RECORD.pack(kind, length), at - _RECORD.size)
            if at + length > size:  # its writer was killed before the editor got any of it
                return
            yield Record(kind, _read(self._file, length, at))
            at += length

    def unwritten(self) -> bytes:
        """What was noted for the editor and not written: the end of the last record for it, or all of it."""
        at, position, found = _HEADER.size, os.lseek(self._file, 0, os.SEEK_CUR), b""
        for record in self.records():
            at += _RECORD.size
            if record.kind == FOR_EDITOR:
                found = record.data[max(0, position - at) :]
            at += len(record.data)
        return found

    @property
    def _file(self) -> int:
        return self.descriptors[self._live]

    def _append(self, kind: bytes, data: bytes) -> None:
        left = memoryview(_RECORD.pack(kind, len(data)) + data)
        while left:
            size = os.pwrite(self._file, left, self._end)
            left, self._end = left[size:], self._end + size

    def _write_header(self) -> None:
        header = _HEADER.pack(self._generation, self._restarted, self._restarts)
        os.pwrite(self._file, header, 0)

    def _moved(self, descriptor: int, at: int) -> int | None:
        """The number of bytes moved from a pipe into the file; None if it is no pipe."""
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode) or not hasattr(os, "splice"):
            return None
        try:
            return os.splice(descriptor, self._file, READ_BYTES, offset_dst=at)
        except OSError as error:
            if error.errno == errno.EINVAL:
                return None
            raise


def _read(file: int, size: int, at: int) -> bytes:
    pieces = []
    while size and (data := os.pread(file, size, at)):
        pieces.append(data)
        size, at = size - len(data), at + len(data)
    return b"".join(pieces)
