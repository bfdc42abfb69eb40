"""tables.py CSV JSONL: finds that both hold the same rows, and prints those of the JSON as one array."""

import csv
import json
import sys


def cell(name, value):
    """What CSV has for a value of JSON."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return ";".join(value) if isinstance(value, list) else str(value)


def main():
    with open(sys.argv[1], newline="", encoding="utf-8") as file:
        assert file.read().endswith("\r\n")
        file.seek(0)
        names, *table = csv.reader(file, strict=True)
    with open(sys.argv[2], newline="\n", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    assert len(table) == len(rows), (len(table), len(rows))
    for line, row in zip(table, rows):
        assert list(row) == names, (list(row), names)
        assert line == [cell(name, row[name]) for name in names], (line, row)
    times = [row["time_ns"] for row in rows]
    assert times == sorted(times), "in the order of time"
    json.dump(rows, sys.stdout)


main()
