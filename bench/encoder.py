"""Prints how fast the built-in model encodes passages and queries."""

import time
from statistics import median

from ragdocs.search.encoders.minilm import OnnxEncoder

SENTENCE = "The index is a cache, and the text that people wrote stays the only truth. "


def main() -> None:
    encoder = OnnxEncoder()
    start = time.perf_counter()
    encoder.encode(["load"])
    print(f"load           {time.perf_counter() - start:6.2f} s")
    passages = [f"Passage {number}. " + SENTENCE * (number % 12 + 1) for number in range(120)]
    wall, processor = time.perf_counter(), time.process_time()
    encoder.encode(passages)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(
        f"passages       {len(passages) / wall:6.1f} a second, {len(passages) / processor:.1f} a processor second"
    )
    queries = []
    for number in range(40):
        start = time.perf_counter()
        encoder.encode([f"how do I turn lane {number} on?"])
        queries.append(time.perf_counter() - start)
    print(f"query p50      {median(queries) * 1000:6.1f} ms")


if __name__ == "__main__":
    main()
