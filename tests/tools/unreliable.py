"""A file system of fsspec that fails as a test says."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from fsspec.implementations.memory import MemoryFileSystem


class Unreliable(MemoryFileSystem):
    """A memory that fails as `faults` say: an exception, or how many bytes are lacking, for each request in turn."""

    protocol = "unreliable"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    faults: ClassVar[list[Any]] = []
    requests: ClassVar[list[tuple[int, int]]] = []

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix("unreliable://").partition("?")[0].rpartition("@")[2].strip("/")

    tags: ClassVar[bool] = False
    """Whether the server says which version of an object there is."""

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        found: dict[str, Any] = super().info(path)
        if self.tags and found["type"] == "file":
            found["ETag"] = str(hash(super().cat_file(path)))
        return found

    def put_file(self, lpath: Any, rpath: Any, *_: Any, **__: Any) -> None:
        fault = self.faults.pop() if self.faults else None
        if isinstance(fault, Exception):
            raise fault
        super().put_file(lpath, rpath)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        self.requests.append((start or 0, end or 0))
        fault = self.faults.pop() if self.faults else None
        if isinstance(fault, Exception):
            raise fault
        if isinstance(fault, float):
            time.sleep(fault)
        content: bytes = super().cat_file(path, start, end)
        return content[: len(content) - fault] if isinstance(fault, int) else content
