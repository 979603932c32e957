"""A Flink session cluster on loopback: job manager, task manager and SQL gateway.

The JVMs are started with the classes and memory parameters of Flink's own
scripts, which the distribution on PyPI lacks. Jobs are submitted over REST, so
a second job finds everything warm, and no client's JVM counts with it.
"""

import glob
import json
import os
import random
import shutil
import socket
import string
import subprocess
import time
import urllib.error
import urllib.request

import tree

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ["lang", "lang.reflect", "net", "io", "nio", "text", "time", "util", "util.concurrent",
            "util.concurrent.atomic", "util.concurrent.locks"]
OPENS = [f"--add-opens=java.base/java.{p}=ALL-UNNAMED" for p in PACKAGES] + [
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED", "--add-exports=java.base/sun.net.util=ALL-UNNAMED"]
# Quiet: the default logs every checkpoint of every task.
LOGGING = """\
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = Console
appender.console.name = Console
appender.console.type = CONSOLE
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c{1} %m%n
"""


def free_ports(n):
    """Ports below the range from which the kernel gives clients theirs: the JVMs open many meanwhile."""
    ports = []
    while len(ports) < n:
        port = random.randrange(20000, 30000)
        with socket.socket() as s:
            if port not in ports and s.connect_ex(("127.0.0.1", port)) != 0:
                ports.append(port)
    return ports


def call(url, body=None, method=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as r:
            return json.load(r)
    except urllib.error.HTTPError as e:
        raise RuntimeError(f"{url}: {e.code}: {e.read().decode(errors='replace')}") from None


def root_cause(answer):
    """The last cause that a gateway's error names; its answer is a stack trace in JSON."""
    causes = [line.strip() for line in answer.replace("\\n", "\n").splitlines() if line.startswith("Caused by: ")]
    return causes[-1] if causes else answer[:300]


class Cluster:
    def __init__(self, java, home, work):
        """home has the distribution in lib/ and bin/; work is this cluster's own directory."""
        self.java, self.home, self.work = java, home, work
        self.conf = os.path.join(work, "conf")
        os.makedirs(self.conf)
        os.makedirs(os.path.join(work, "tmp"))
        rpc, rest, gateway = free_ports(3)
        shutil.copy(os.path.join(HERE, "flink.yaml"), os.path.join(self.conf, "config.yaml"))
        with open(os.path.join(self.conf, "config.yaml"), "a") as f:
            f.write(f"jobmanager.rpc.port: {rpc}\nrest.port: {rest}\n"
                    f"sql-gateway.endpoint.rest.port: {gateway}\nio.tmp.dirs: {work}/tmp\n")
        with open(os.path.join(self.conf, "log4j.properties"), "w") as f:
            f.write(LOGGING)
        self.rest, self.gateway = f"http://127.0.0.1:{rest}", f"http://127.0.0.1:{gateway}"
        self.log = os.path.join(work, "flink.log")
        self.classes = ":".join(sorted(glob.glob(f"{home}/lib/*.jar")))
        # What Flink's scripts ask for too, before they start a JVM; not measured.
        self.jm = self._parameters("GET_JM_RESOURCE_PARAMS")
        self.tm = self._parameters("GET_TM_RESOURCE_PARAMS")

    def _parameters(self, command):
        jars = ":".join(glob.glob(f"{self.home}/bin/*.jar") + glob.glob(f"{self.home}/lib/flink-dist-*.jar"))
        out = subprocess.run([self.java, "-cp", jars, "org.apache.flink.runtime.util.bash.BashJavaUtils", command,
                              "--configDir", self.conf], stdout=subprocess.PIPE, check=True, text=True).stdout
        mark = "BASH_JAVA_UTILS_EXEC_RESULT:"
        jvm, dynamic = [line.split(mark)[1].split() for line in out.splitlines() if mark in line]
        return jvm, dynamic

    def _start(self, jvm, main, arguments):
        argv = [self.java, *jvm, *OPENS, f"-Dlog4j.configurationFile=file:{self.conf}/log4j.properties",
                f"-Djava.io.tmpdir={self.work}/tmp", "-cp", self.classes, main, *arguments]
        return tree.start(argv, self.log, {"FLINK_CONF_DIR": self.conf})

    def start(self):
        jvm, dynamic = self.jm
        self.processes = [self._start(
            jvm, "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
            ["--configDir", self.conf, "--executionMode", "cluster", *dynamic])]
        jvm, dynamic = self.tm
        self.processes.append(self._start(
            ["-XX:+UseG1GC", *jvm], "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
            ["--configDir", self.conf, *dynamic]))
        self.processes.append(self._start(["-Xmx512m"], "org.apache.flink.table.gateway.SqlGateway", []))
        try:
            self._await(lambda: call(self.rest + "/overview")["slots-total"] == 2)
            self._await(lambda: "productName" in call(self.gateway + "/v1/info"))
        except RuntimeError:
            self.kill()
            raise

    def _await(self, ready, patience=300):
        deadline = time.monotonic() + patience
        while True:
            try:
                if ready():
                    return
            except (OSError, RuntimeError, KeyError):
                pass
            if any(p.poll() is not None for p in self.processes) or time.monotonic() > deadline:
                raise RuntimeError(f"Flink does not start; its log:\n{tree.tail(self.log, 40)}")
            time.sleep(0.05)

    def submit(self, values, restore=None):
        """Runs flink.sql; returns the id of its job, which runs on."""
        with open(os.path.join(HERE, "flink.sql")) as f:
            text = string.Template(f.read()).substitute(values)
        text = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
        statements = [s.strip() for s in text.split(";\n") if s.strip()]
        if restore:
            statements.insert(0, f"SET 'execution.state-recovery.path' = 'file://{restore}'")
        session = call(self.gateway + "/v1/sessions", {})["sessionHandle"]
        for statement in statements:
            result = self._execute(session, statement.rstrip(";"))
        return result["results"]["data"][0]["fields"][0]

    def _execute(self, session, statement):
        base = f"{self.gateway}/v1/sessions/{session}"
        operation = call(base + "/statements", {"statement": statement})["operationHandle"]
        while True:
            status = call(f"{base}/operations/{operation}/status")["status"]
            if status == "FINISHED":
                return call(f"{base}/operations/{operation}/result/0")
            if status not in ("RUNNING", "PENDING", "INITIALIZED"):
                try:
                    call(f"{base}/operations/{operation}/result/0")
                except RuntimeError as e:  # the answer holds the cause
                    raise tree.Failed(root_cause(str(e))) from None
                raise tree.Failed(f"{statement}: {status}")
            time.sleep(0.02)

    def state(self, job):
        return call(f"{self.rest}/jobs/{job}")

    def wait(self, job, patience=3000):
        """Waits for the end of a job, and returns when it was: seconds since 1970.

        Asks for little and seldom, so that asking costs no CPU that counts; the end is the cluster's own time stamp.
        """
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            state = call(f"{self.rest}/jobs/{job}/status")["status"]
            if state == "FINISHED":
                return self.state(job)["end-time"] / 1000
            if state in ("FAILED", "CANCELED"):
                entries = call(f"{self.rest}/jobs/{job}/exceptions")["exceptionHistory"]["entries"]
                causes = [line for e in entries for line in e["stacktrace"].splitlines() if not line.startswith("\t")]
                raise tree.Failed(f"job {state}: " + "\n".join(causes))
            time.sleep(0.25)
        raise RuntimeError(f"job still runs after {patience} s")

    def stop(self):
        for p in self.processes:
            p.terminate()
        for p in self.processes:
            tree.reap(p)

    def kill(self):
        tree.kill_all()
        for p in self.processes:
            tree.reap(p)


def last_checkpoint(state):
    """The newest completed checkpoint under the directory, or None."""
    done = glob.glob(f"{state}/*/chk-*/_metadata")
    return os.path.dirname(max(done, key=os.path.getmtime)) if done else None
