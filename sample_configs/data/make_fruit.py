"""Makes up the fruits of the sample of tables: weight, length, width, kind, day of harvest. Seeded.

    python sample_configs/data/make_fruit.py

Writes fruit.parquet with row groups of 150 rows, sorted by day.
"""

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

KINDS = {"apple": (180, 7.5, 7.5), "banana": (120, 18, 3.5), "lemon": (100, 8, 5.5), "plum": (60, 5, 4.5)}
"""Grams, centimetres, centimetres."""
ROWS = 600


def main() -> None:
    """Write the file."""
    rng = np.random.default_rng(4)
    names = list(KINDS)
    kinds = rng.integers(len(names), size=ROWS)
    middle = np.array(list(KINDS.values()))[kinds]
    sizes = (middle * rng.normal(1, 0.12, middle.shape)).round(1).astype(np.float32)
    first = date(2026, 6, 1)
    table = pa.table(
        {
            "weight": sizes[:, 0],
            "length": sizes[:, 1],
            "width": sizes[:, 2],
            "kind": [names[k] for k in kinds],
            "harvested": [first + timedelta(days=day // 5) for day in range(ROWS)],
        }
    )
    pq.write_table(table, Path(__file__).parent / "fruit.parquet", row_group_size=150)


if __name__ == "__main__":
    main()
