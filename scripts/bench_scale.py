"""Measure how time and memory of a cut-over grow with the number of partitions.

Usage: ``.venv/bin/python scripts/bench_scale.py`` (``scripts/test`` makes .venv). For each number of partitions the
script starts a Kafka and measures ``cold``, ``warm``, ``bare``, ``csv`` and ``parquet`` of ``bench_cutover.py``, in
turns. Above 15,000 partitions the Kafka has three brokers, because a broker that may open 20,000 files holds about
19,000 partitions. The script prints the medians, their ratios to the medians for 10,000 partitions (or for the first
number), and the peak memory.
"""

from __future__ import annotations

from _bench import medians, options_of, save
from bench_cutover import measure

SIZES = (1_000, 10_000, 20_000, 50_000)
NAMES = ["cold", "warm", "bare", "csv", "parquet"]


def main() -> None:
    """Measure, and print the results."""
    parser = options_of("Measure how a cut-over grows with the number of partitions.", runs=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    options = parser.parse_args()
    found = {size: measure(size, 1, NAMES, options.runs) for size in options.sizes}
    middle = {size: medians(runs) for size, runs in found.items()}
    base = middle.get(10_000, next(iter(middle.values())))
    print(f"seconds (times those of the base), peak MB; {options.runs} runs each")
    print(f"{'partitions':>10}" + "".join(f"{name:>22}" for name in NAMES))
    for size, runs in found.items():
        most = {name: max(each.megabytes for each in runs[name]) for name in NAMES}
        seconds = middle[size]
        cells = [f"{seconds[name]:8.2f} ({seconds[name] / base[name]:4.1f}) {most[name]:4.0f}" for name in NAMES]
        print(f"{size:10,}" + "".join(f"{cell:>22}" for cell in cells))
    save(options.json, {f"{size} partitions": runs for size, runs in found.items()})


if __name__ == "__main__":
    main()
