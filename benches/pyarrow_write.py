"""pyarrow_write.py LAKE: reads the files of a parquet export, and prints the seconds that pyarrow takes to write the same
columns again, with the same codec and row groups of the same size, as an exporter in Python would."""

import pathlib
import sys
import tempfile
import time

import pyarrow.parquet as parquet

ROW_GROUP = 128 * 1024  # as in crates/cli/src/export/parquet.rs


def main():
    lake = pathlib.Path(sys.argv[1])
    seconds = 0.0
    with tempfile.TemporaryDirectory(dir=lake.parent) as folder:
        for number, path in enumerate(sorted(lake.rglob("*.parquet"))):
            table = parquet.ParquetFile(path).read()
            begin = time.monotonic()
            parquet.write_table(table, f"{folder}/{number}.parquet", compression="snappy", row_group_size=ROW_GROUP)
            seconds += time.monotonic() - begin
    if not seconds:
        sys.exit(f"{lake}: no parquet files")
    print(seconds)


main()
