"""Runs a program and measures it with all that it starts.

CPU seconds are the kernel's own sum: the driver makes itself the reaper of
orphans, so every process of the tree is waited for either by its parent or
here, and the resource usage of the driver's children grows by what the whole
tree used, grandchildren and daemons included. `check` proves that with a known
load. Peak memory is the largest sum of resident sizes seen, four times a
second; pages that two processes share count twice. Linux only.
"""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
PR_SET_CHILD_SUBREAPER = 36
SAMPLE_SECONDS = 0.25
LOOK_SECONDS = 0.1


def adopt_orphans():
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot become the reaper of orphans (prctl); Linux only")


def stats():
    """Every process: pid -> (parent, own CPU seconds, with waited children, resident bytes)."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as f:
                field = f.read().rpartition(b")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        user, system, waited_user, waited_system = (int(v) for v in field[11:15])
        found[int(name)] = (int(field[1]), (user + system + waited_user + waited_system) / TICKS,
                            int(field[21]) * PAGE)
    return found


def descendants(root, found=None):
    found = stats() if found is None else found
    children = {}
    for pid, (parent, _, _) in found.items():
        children.setdefault(parent, []).append(pid)
    out, todo = [], [root]
    while todo:
        for pid in children.get(todo.pop(), []):
            out.append(pid)
            todo.append(pid)
    return out


def cpu_of_running():
    """CPU seconds of every descendant now alive, and of what these have waited for."""
    found = stats()
    return sum(found[pid][1] for pid in descendants(os.getpid(), found))


def cpu_of_ended():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def machine_busy():
    """CPU seconds that the whole machine has worked since it booted."""
    with open("/proc/stat") as f:
        user, nice, system, _, _, irq, softirq, steal = (int(v) for v in f.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def wait_until_quiet(minutes, share=0.15):
    """Waits until other programs use less than this share of the machine, so many minutes at most; returns their share."""
    deadline = time.monotonic() + minutes * 60
    while True:
        busy = machine_busy()
        time.sleep(2)
        others = (machine_busy() - busy) / 2 / os.cpu_count()
        if others < share or time.monotonic() >= deadline:
            return others


class Watch:
    """Samples the driver's descendants, and looks for the first file that a reader of `out` could read."""

    def __init__(self, out=None):
        self.out, self.peak, self.first = out, 0, None
        self.busy = machine_busy()
        self.started, self.wall = time.monotonic(), time.time()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        sampled = 0.0
        while not self._end.wait(LOOK_SECONDS):
            now = time.monotonic()
            if self.first is None and self.out and any(complete(f) for f in visible(self.out)):
                self.first = time.monotonic() - self.started
            if now - sampled >= SAMPLE_SECONDS:
                sampled = now
                found = stats()
                self.peak = max(self.peak, sum(found[p][2] for p in descendants(os.getpid(), found)))

    def stop(self, own):
        """own: the CPU seconds that were measured; what else the machine did is other programs', the driver's looking included."""
        others = (machine_busy() - self.busy - own) / (time.monotonic() - self.started) / os.cpu_count()
        self._end.set()
        self._thread.join()
        return {"cpu_seconds": own, "peak_rss_mb": self.peak / 1e6, "first_file_seconds": self.first, "others_share": max(0.0, others)}


def visible(table):
    """The files that a reader sees who lists the table's directories, as Hive's do: nothing that begins with . or _."""
    for directory, names, files in os.walk(table):
        names[:] = [n for n in names if n[0] not in "._"]
        for name in files:
            if name[0] not in "._":
                yield os.path.join(directory, name)


def hidden(table):
    """Files left beside the table's that no reader sees and that hold data; markers and check sums do not."""
    out = []
    for directory, _, files in os.walk(table):
        parts = os.path.relpath(directory, table).split(os.sep)
        for name in files:
            path = os.path.join(directory, name)
            staged = parts[0] == ".hivesink" and name.endswith(".parquet")
            beside = parts[0].startswith("dt=") and (name[0] in "._" or any(p[0] in "._" for p in parts))
            if (staged or beside) and not name.endswith(".crc") and os.path.getsize(path) > 0:
                out.append(path)
    return out


def complete(path):
    """Whether the file has its footer: some systems write where readers look."""
    try:
        with open(path, "rb") as f:
            if f.seek(0, os.SEEK_END) < 12:
                return False
            f.seek(-4, os.SEEK_END)
            return f.read() == b"PAR1"
    except OSError:
        return False


class Failed(RuntimeError):
    """A system ended its work with an error."""


def start(argv, log, env=None):
    with open(log, "ab") as f:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=f, stderr=f, start_new_session=True,
                                env=None if env is None else os.environ | env)


def reap(child, patience=20.0):
    """Waits for the child, then for its orphans; what has not ended by then is killed."""
    status = child.wait()
    deadline = time.monotonic() + patience
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            if time.monotonic() > deadline:
                kill_all()
            time.sleep(0.02)


def kill_all():
    """kill -9 of everything the driver has started."""
    for pid in descendants(os.getpid()):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def run(argv, out, log, env=None):
    """Runs a program to its end: wall and CPU seconds, peak memory, time of the first file."""
    before = cpu_of_ended()
    watch = Watch(out)
    child = start(argv, log, env)
    code = child.wait()
    seconds = time.monotonic() - watch.started
    reap(child)
    measured = {"seconds": seconds} | watch.stop(cpu_of_ended() - before)
    if code != 0:
        raise Failed(f"{argv[0]}: exit code {code}; its last words are in {log}:\n{tail(log)}")
    return measured


def tail(log, lines=15):
    with open(log, errors="replace") as f:
        return "".join(f.readlines()[-lines:])


# Burns CPU, then appends what it has used to a file, by its own clock and as its very last act.
SPIN = """
import sys, time
while time.process_time() < 0.5: pass
with open(sys.argv[1], "a") as f: print(time.process_time(), file=f)
"""
# One of those that is waited for, one that is left behind as an orphan, one here.
LOAD = f"""
import subprocess, sys, time
subprocess.run([sys.executable, "-c", {SPIN!r}, sys.argv[1]])
subprocess.Popen([sys.executable, "-c", {SPIN!r}, sys.argv[1]], start_new_session=True)
held = bytearray(200_000_000)
held[::4096] = b"1" * len(held[::4096])
time.sleep(1)
{SPIN}
"""


def check(scratch):
    """Measures a load that is known: three processes that tell their CPU seconds, and 200 MB. Returns both."""
    open(scratch, "w").close()
    found = run([sys.executable, "-c", LOAD, scratch], None, os.devnull)
    with open(scratch) as f:
        told = [float(line) for line in f]
    os.remove(scratch)
    # What ends a process, after its last look at its clock, is allowed for.
    if len(told) != 3 or not sum(told) <= found["cpu_seconds"] <= sum(told) * 1.1 + 0.1:
        raise RuntimeError(f"three processes used {told} CPU seconds, {found['cpu_seconds']:.2f} were measured: the figures would be wrong")
    if not 200 <= found["peak_rss_mb"] <= 300:
        raise RuntimeError(f"200 MB were held, {found['peak_rss_mb']:.0f} measured: the figures would be wrong")
    return {"known_cpu_seconds": round(sum(told), 3), "measured_cpu_seconds": round(found["cpu_seconds"], 3),
            "held_mb": 200, "measured_mb": round(found["peak_rss_mb"])}


adopt_orphans()

