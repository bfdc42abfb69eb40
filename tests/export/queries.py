"""queries.py PAGE LAKE STAT: runs every query of the page with DuckDB and with Spark over the Parquet files in LAKE, and
compares the answers with each other and with what `aclshim stat --json` says."""

import decimal
import glob
import json
import os
import platform
import re
import sys
import tempfile
import zipfile

import duckdb
import pyspark
from pyspark.sql import SparkSession


def blocks(page, engine):
    """The statements for one engine, in order: (name or None, text)."""
    found = []
    for info, text in re.findall(r"^```sql ?(\w*)\n(.*?)^```$", page, re.M | re.S):
        if info in ("", engine):
            for statement in text.split(";"):
                if statement.strip():
                    name = re.search(r"^-- (\w+)$", statement, re.M)
                    found.append((name and name[1], statement.strip()))
    return found


def plain(value):
    """Numbers of both engines alike; a date as text."""
    if isinstance(value, decimal.Decimal):
        return int(value) if value == int(value) else float(value)
    if isinstance(value, float):
        return int(value) if value == int(value) else round(value, 6)
    return value if value is None or isinstance(value, (int, str)) else str(value)


def answers(statements, lake, run):
    """By name: the rows of each query."""
    found = {}
    for name, text in statements:
        rows = run(text.replace("'lake", "'" + lake))
        if name:
            found[name] = [tuple(plain(value) for value in row) for row in rows]
    return found


def snappy_of_glibc(folder):
    """Options that have Spark load the Snappy library for glibc, which this puts into a folder. By itself Spark takes the
    one for musl where musl's loader is installed too (Debian's package musl), and a JVM of glibc cannot load that."""
    (jar,) = glob.glob(os.path.join(pyspark.__path__[0], "jars", "snappy-java-*.jar"))
    name = f"org/xerial/snappy/native/Linux/{platform.machine()}/libsnappyjava.so"
    with zipfile.ZipFile(jar) as files, open(os.path.join(folder, "libsnappyjava.so"), "wb") as library:
        library.write(files.read(name))
    return f"-Dorg.xerial.snappy.lib.path={folder}"


def is_mapped(file):
    """Whether a running process has this file mapped."""
    for maps in glob.glob("/proc/[0-9]*/maps"):
        try:
            with open(maps) as lines:
                if any(file in line for line in lines):
                    return True
        except OSError:
            pass
    return False


def spark_session(options):
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(os.environ.get("SPARK_MASTER", "local-cluster[2,1,1024]"))
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        # Nothing begins before all executors are there.
        "spark.cores.max": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "600s",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": options,
        "spark.executor.extraJavaOptions": options,
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def main():
    page, lake, stat = open(sys.argv[1]).read(), os.path.abspath(sys.argv[2]), json.load(open(sys.argv[3]))
    duck = duckdb.connect()
    one = answers(blocks(page, "duckdb"), lake, lambda text: duck.execute(text).fetchall())
    with tempfile.TemporaryDirectory() as folder:
        spark = spark_session(snappy_of_glibc(folder))
        spark.sparkContext.setLogLevel("ERROR")
        other = answers(blocks(page, "spark"), lake, lambda text: spark.sql(text).collect())
        master = spark.sparkContext.master
        executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
        assert is_mapped(os.path.join(folder, "libsnappyjava.so")), "Spark has loaded another Snappy library"
        spark.stop()

    assert one.keys() == other.keys() and len(one) >= 8, (one.keys(), other.keys())
    for name in one:
        assert one[name] == other[name], f"{name}: DuckDB {one[name]}\nSpark {other[name]}"
        assert one[name] or name == "open", f"{name}: no rows"

    keys = ["calls", "bytes", "errors", "in_flight"]
    assert one["totals"] == [tuple(stat[key] for key in keys)], (one["totals"], stat)
    functions = {name: tuple(of[key] for key in keys[:3]) for name, of in stat["functions"].items()}
    assert {name: (calls, size or 0, errors) for name, calls, size, errors in one["functions"]} == functions
    assert dict(one["findings"]) == stat["findings"], (one["findings"], stat["findings"])
    ranks = one["ranks"]
    assert sum(calls for _, _, _, calls, _, _ in ranks) == stat["calls"]
    assert sum(size or 0 for _, _, _, _, size, _ in ranks) == stat["bytes"]
    assert sum(size or 0 for _, _, size in one["seconds"]) == stat["bytes"]
    print(json.dumps({
        "master": master,
        "executors": executors,
        "hosts": sorted({host for host, *_ in ranks}),
        "dates": sorted({date for _, date, *_ in ranks}),
        "ranks": sorted({rank for _, _, rank, *_ in ranks}),
        "open": len(one["open"]),
    }))


main()
