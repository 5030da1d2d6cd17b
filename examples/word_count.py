"""Counts the words of text files."""

import argparse
from collections import Counter
from pathlib import Path


def count_words(text: str) -> Counter[str]:
    """How often each word occurs, in lower case."""
    counts: Counter[str] = Counter()
    for line in text.splitlines():
        for word in line.lower().split():
            counts[‹cursor›] += 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--top", type=int, default=10)
    arguments = parser.parse_args()
    total: Counter[str] = Counter()
    for path in arguments.files:
        total += count_words(path.read_text())
    for word, count in total.most_common(arguments.top):
        print(f"{count:6} {word}")


if __name__ == "__main__":
    main()
