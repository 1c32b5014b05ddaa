"""Print what a wheel contains and how large each part is, compressed.

python .github/wheel_contents.py out/dist/vlscore-*.whl
"""

import sys
import zipfile
from collections import Counter
from pathlib import Path


def parts(wheel: Path) -> dict[str, tuple[int, int]]:
    """Return files and compressed bytes of each part of a wheel, the largest first."""
    files: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            names = entry.filename.split("/")
            depth = 3 if names[1] == "_bundled" else 1
            part = "/".join(names[:depth])
            files[part] += 1
            sizes[part] += entry.compress_size
    return {part: (files[part], size) for part, size in sizes.most_common()}


if __name__ == "__main__":
    path = Path(sys.argv[1])
    for part, (count, size) in parts(path).items():
        print(f"{part:<40} {count:>5} files {size / 1000:>8.0f} kB")
    print(f"{path.name:<40} {path.stat().st_size / 1000:>20.0f} kB")
