"""Kills each streaming system once or more in mid-stream, restarts it, and counts what its table holds.

Everything the system runs is killed with signal 9 at the same time; the restart
is what an operator does: the same command again, for Flink the same SQL from
the newest completed checkpoint.
"""

import os
import time

import flink
import systems
import tree


class Ended(Exception):
    """The system had ended before it was to be killed."""


class CannotRestart(Exception):
    """The second run, after the kill, ended with an error."""


def command(bench, argv, env, moment):
    """Kills a command at the moment, runs it again. Moment: seconds after launch, or 'published': a file is visible."""
    log, out = bench.path("log"), bench.path("out")
    child = tree.start(argv, log, env)
    began = time.monotonic()
    while True:
        if child.poll() is not None:
            raise Ended()
        now = time.monotonic() - began
        if any(True for _ in tree.visible(out)) if moment == "published" else now >= moment:
            break
        time.sleep(0.005)
    tree.kill_all()
    tree.reap(child)
    try:
        again = tree.run(argv, None, log, env)
    except tree.Failed as e:
        raise CannotRestart(str(e)) from e
    return {"killed_at_seconds": now, "again_seconds": again["seconds"]}


def source_ended(cluster, job):
    return cluster.state(job)["vertices"][0]["status"] == "FINISHED"


def flink_job(bench, codec, interval, moment):
    """Kills the whole cluster. Moment: seconds after submission, or 'compacting': the source has ended, its files are being compacted."""
    values = systems.flink_values(bench, codec, interval, "out")
    cluster = flink.Cluster(bench.java, bench.flink_home, bench.path("cluster"))
    cluster.start()
    try:
        job = cluster.submit(values)
        began = time.monotonic()
        while True:
            if flink.call(f"{cluster.rest}/jobs/{job}/status")["status"] == "FINISHED":
                raise Ended()
            now = time.monotonic() - began
            if moment == "compacting":
                reached = source_ended(cluster, job) and any(True for _ in tree.visible(bench.path("out")))
            else:
                reached = now >= moment
            if reached:
                break
            time.sleep(0.05)
    finally:
        cluster.kill()
    checkpoint = flink.last_checkpoint(values["STATE"])
    began = time.monotonic()
    with systems.flink_cluster(bench, "cluster-again") as cluster:
        try:
            cluster.wait(cluster.submit(values, restore=checkpoint))
        except tree.Failed as e:
            raise CannotRestart(str(e)) from e
        return {"killed_at_seconds": now, "again_seconds": time.monotonic() - began,
                "checkpoint": os.path.basename(checkpoint) if checkpoint else None}


def attempt(bench, run):
    """One kill and its count; a system that cannot be restarted says why."""
    bench.clean()
    try:
        result = run()
    except Ended:
        return None
    except CannotRestart as e:
        result = {"cannot_restart": str(e).splitlines()[-1].replace(bench.work + "/", "")[:300]}
    return result | bench.contents(bench.path("out"))


def all_systems(bench, codec, seconds, have, report):
    """report takes (system, interval, moment, result). seconds: how long each system takes when nobody kills it."""
    for fraction in (0.3, 0.5, 0.7):
        moment = f"{fraction:.0%} of its time"
        report("hivesink", "1 s", moment, attempt(bench, lambda: command(
            bench, systems.hivesink_command(bench, codec, "1s"), None, fraction * seconds["hivesink"])))
        if "spark" in have:
            def spark():
                return command(bench, systems.spark_command(bench, codec), systems.spark_environment(bench), fraction * seconds["spark"])
            result = attempt(bench, spark)
            report("Spark, a reader lists", "each file", moment, result)
            if result and "cannot_restart" not in result:
                own = bench.contents(bench.path("out"), systems.spark_files(bench))
                report("Spark, Spark reads", "each file", moment, result | own)
        if "flink" in have:
            report("Flink", "2 s", moment, attempt(bench, lambda: flink_job(bench, codec, "2 s", fraction * seconds["flink"])))
    for _ in range(3):
        report("hivesink", "1 s", "publishing at the end", attempt(bench, lambda: command(
            bench, systems.hivesink_command(bench, codec, "1s"), None, "published")))
        if "flink" in have:
            report("Flink", "10 s", "compacting at the end", attempt(bench, lambda: flink_job(bench, codec, "10 s", "compacting")))
