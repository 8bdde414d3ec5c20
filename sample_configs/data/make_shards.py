"""Packs pictures of the image sample as tar shards: `000017.png` and `000017.cls` are a sample.

    python sample_configs/data/make_shards.py

Reads shapes.zip, which make_shapes.py makes; writes shards_0.tar, shards_1.tar (training) and shards_test.tar.
"""

import io
import tarfile
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
SHARDS = {"shards_0": ("train", 0, 96), "shards_1": ("train", 96, 192), "shards_test": ("test", 0, 64)}
"""The name of an archive: which pictures are in it."""


def add(shard: tarfile.TarFile, name: str, content: bytes) -> None:
    """Append a member; its time and owner are always the same."""
    member = tarfile.TarInfo(name)
    member.size = len(content)
    shard.addfile(member, io.BytesIO(content))


def main() -> None:
    """Write all archives."""
    with zipfile.ZipFile(HERE / "shapes.zip") as pictures:
        for name, (part, begin, end) in SHARDS.items():
            with tarfile.open(HERE / f"{name}.tar", "w", format=tarfile.USTAR_FORMAT) as shard:
                for i in range(begin, end):
                    add(shard, f"{i:06d}.png", pictures.read(f"{part}/{i:03d}.png"))
                    add(shard, f"{i:06d}.cls", str(i % 4).encode())


if __name__ == "__main__":
    main()
