"""The systems beside each other: how each is run, what is said of its output.

A system is run on an empty directory and returns its measurements; `contents`
then counts what a reader finds in the table.
"""

import contextlib
import json
import os
import shutil
import string
import subprocess

import flink
import tree

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
HIVESINK = os.path.join(ROOT, "bin", "hivesink")


class Bench:
    """Where the input lies, where the systems write, and with what they run."""

    def __init__(self, data, work, python, java, flink_home, threads, patience):
        self.data, self.work, self.python, self.java = data, work, python, java
        self.flink_home, self.threads = flink_home, threads
        self.patience, self.want = patience, None

    def clean(self):
        """An empty directory to write in, and as far as there is patience a machine that does nothing else."""
        tree.wait_until_quiet(self.patience)
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)

    def path(self, name):
        return os.path.join(self.work, name)

    def script(self, name, *arguments):
        return [self.python, os.path.join(HERE, name), *map(str, arguments)]

    def count_input(self):
        """What every table has to hold, by partition; kept beside the input, which never changes."""
        kept = self.data + ".counts.json"
        if not os.path.exists(kept):
            out = subprocess.run(self.script("verify.py", "input", self.data), stdout=subprocess.PIPE, check=True, text=True)
            with open(kept, "w") as f:
                f.write(out.stdout)
        with open(kept) as f:
            self.want = json.load(f)
        return sum(counts[0] for counts in self.want.values())

    def contents(self, table, files=None):
        """Files, bytes and rows of a table; exact: the same counts and the same values as the input, in each partition."""
        files = sorted(tree.visible(table)) if files is None else files
        broken = [f for f in files if not tree.complete(f)]
        whole = [f for f in files if f not in set(broken)]
        got = {}
        if whole:
            out = subprocess.run(self.script("verify.py", "files"), input="\n".join(whole), stdout=subprocess.PIPE, check=True, text=True)
            got = json.loads(out.stdout)
        rows, distinct = (sum(counts[i] for counts in got.values()) for i in (0, 1))
        wanted = sum(counts[1] for counts in self.want.values())
        return {"files": len(files), "broken_files": len(broken), "hidden_files": len(tree.hidden(table)),
                "bytes": sum(os.path.getsize(f) for f in files), "rows": rows,
                "doubled": rows - distinct, "lost": wanted - distinct, "exact": got == self.want and not broken}


def hivesink_command(bench, codec, interval):
    config = bench.path("hivesink.yaml")
    with open(os.path.join(HERE, "hivesink.yaml")) as f:
        text = string.Template(f.read()).substitute(
            DATA=bench.data, OUT=bench.path("out"), STATE=bench.path("state"), CODEC=codec, INTERVAL=interval, THREADS=bench.threads)
    with open(config, "w") as f:
        f.write(text)
    return [HIVESINK, "run", "-c", config, "--json"]


def hivesink(bench, codec, interval):
    return tree.run(hivesink_command(bench, codec, interval), bench.path("out"), bench.path("log"))


def duckdb(bench, codec):
    return tree.run(bench.script("duckdb_job.py", bench.data, bench.path("out"), codec, bench.threads), bench.path("out"), bench.path("log"))


def polars(bench, codec):
    return tree.run(bench.script("polars_job.py", bench.data, bench.path("out"), codec), bench.path("out"), bench.path("log"),
                    {"POLARS_MAX_THREADS": str(bench.threads)})


def spark_command(bench, codec):
    return bench.script("spark_job.py", "run", bench.data, bench.path("out"), bench.path("state"), codec, bench.threads)


def spark_environment(bench):
    # The driver's address is loopback, whatever the machine's name resolves to.
    return {"JAVA_HOME": os.path.dirname(os.path.dirname(os.path.realpath(bench.java))),
            "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": bench.path("tmp")}


def spark(bench, codec):
    return tree.run(spark_command(bench, codec), bench.path("out"), bench.path("log"), spark_environment(bench))


def spark_files(bench):
    """The files that Spark's own log of the table names; Spark reads by it, others list directories."""
    out = subprocess.run(bench.script("spark_job.py", "files", bench.path("out")), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         check=True, text=True, env=os.environ | spark_environment(bench)).stdout
    return sorted(line[len("FILE file://"):] for line in out.splitlines() if line.startswith("FILE file://"))


def flink_values(bench, codec, interval, name):
    return {"DATA": bench.data, "OUT": bench.path(name), "STATE": bench.path(name + "-state"), "CODEC": codec.upper(),
            "INTERVAL": interval, "COMPACTION": "true"}


@contextlib.contextmanager
def flink_cluster(bench, name="cluster"):
    """A started cluster, which has stopped when the block is left, with whatever error."""
    cluster = flink.Cluster(bench.java, bench.flink_home, bench.path(name))
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


def flink_job(bench, cluster, codec, interval, name):
    """One job on a running cluster: what the whole cluster, gateway included, used from submission to end."""
    before, watch = tree.cpu_of_running(), tree.Watch(bench.path(name))
    job = cluster.submit(flink_values(bench, codec, interval, name))
    seconds = cluster.wait(job) - watch.wall
    return {"seconds": seconds} | watch.stop(tree.cpu_of_running() - before)


def flink_round(bench, codec, report):
    """A fresh cluster with its first job, then jobs on the warm one; report takes (name, interval, measured, table)."""
    cluster = flink.Cluster(bench.java, bench.flink_home, bench.path("cluster"))
    watch = tree.Watch(bench.path("fresh"))
    cluster.start()
    try:
        job = cluster.submit(flink_values(bench, codec, "10 s", "fresh"))
        seconds = cluster.wait(job) - watch.wall
        # All of it is one tree that began with the watch.
        fresh = {"seconds": seconds} | watch.stop(tree.cpu_of_running())
        report("Flink, fresh cluster", "10 s", fresh, bench.path("fresh"))
        for name, interval in (("warm-2", "10 s"), ("warm-3", "10 s"), ("warm-4", "2 s")):
            report("Flink, warm cluster", interval, flink_job(bench, cluster, codec, interval, name), bench.path(name))
    finally:
        cluster.stop()
