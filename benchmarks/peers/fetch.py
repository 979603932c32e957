"""Brings the peers into .bench-peers/: a venv with DuckDB, Polars and Spark, and Flink's jars.

Python packages come through pip, jars through mvn, each configured as the user
has it. Without mvn, MAVEN_REPO names the base address of a Maven repository.
Files of Flink are compared with the sha256 in flink-pins.txt; pip and mvn -C
verify the rest with the registry's own checksums.
"""

import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
HOME = os.path.join(ROOT, ".bench-peers")
MIN_JAVA = 17


def java():
    """The java to use and its version line; or None and what to do about it."""
    home = os.environ.get("JAVA_HOME")
    command = os.path.join(home, "bin", "java") if home else shutil.which("java")
    advice = f"Flink and Spark need Java {MIN_JAVA} or newer (Debian: apt-get install openjdk-17-jre-headless)"
    if not command or not os.path.exists(command):
        return None, advice
    lines = subprocess.run([command, "-version"], stderr=subprocess.PIPE, text=True).stderr.splitlines()
    line = next((x for x in lines if " version " in x), "")
    number = line.split('"')[1].split(".")[0].split("-")[0] if '"' in line else "0"
    if int(number) < MIN_JAVA:
        return None, f"{advice}; {command} is: {line or 'unknown'}"
    return command, line


def venv():
    """The interpreter of the peers' own venv, made anew when requirements.txt has changed."""
    want = os.path.join(HERE, "requirements.txt")
    home, python = os.path.join(HOME, "venv"), os.path.join(HOME, "venv", "bin", "python")
    done = os.path.join(home, "requirements.txt")
    if not (os.path.exists(done) and same(want, done)):
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", want], check=True)
        shutil.copy(want, done)
    return python


def same(a, b):
    with open(a) as x, open(b) as y:
        return x.read() == y.read()


def pins():
    with open(os.path.join(HERE, "flink-pins.txt")) as f:
        return [line.split() for line in f if line.strip() and line[0] != "#"]


def flink():
    """The directory with Flink's lib/ and bin/, made anew when flink-pins.txt has changed."""
    want, home = os.path.join(HERE, "flink-pins.txt"), os.path.join(HOME, "flink")
    done = os.path.join(home, "flink-pins.txt")
    if os.path.exists(done) and same(want, done):
        return home
    shutil.rmtree(home, ignore_errors=True)
    fetched = os.path.join(HOME, "fetched")
    os.makedirs(os.path.join(home, "lib"))
    os.makedirs(fetched, exist_ok=True)
    for kind, name, digest in pins():
        path = find(fetched, digest)
        if not path:
            (from_pypi if kind == "pypi" else from_maven)(name, fetched)
            path = find(fetched, digest)
        if not path:
            raise RuntimeError(f"{name}: what came has not the sha256 {digest}; see {fetched}")
        if kind == "pypi":
            unpack(path, home)
        else:
            shutil.copy(path, os.path.join(home, "lib"))
    shutil.copy(want, done)
    return home


def find(directory, digest):
    for path in glob.glob(f"{directory}/*.*"):
        with open(path, "rb") as f:
            if hashlib.file_digest(f, "sha256").hexdigest() == digest:
                return path
    return None


def from_pypi(requirement, into):
    # It is a source archive of jars: nothing is built, and no other package is wanted.
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                    "--no-binary", ":all:", "-d", into, requirement], check=True)


def from_maven(coordinate, into):
    group, artifact, version = coordinate.split(":")
    repository = os.environ.get("MAVEN_REPO")
    if repository:
        name = f"{artifact}-{version}.jar"
        address = "/".join([repository.rstrip("/"), group.replace(".", "/"), artifact, version, name])
        with urllib.request.urlopen(address) as r, open(os.path.join(into, name), "wb") as f:
            shutil.copyfileobj(r, f)
    elif shutil.which("mvn"):
        subprocess.run(["mvn", "-q", "-B", "-C", "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy",
                        f"-Dartifact={coordinate}", f"-DoutputDirectory={into}"], check=True)
    else:
        raise RuntimeError(f"{coordinate}: install mvn, or set MAVEN_REPO to the base address of a Maven repository")


def unpack(archive, home):
    """Of the archive only deps/lib and deps/bin."""
    with tarfile.open(archive) as t:
        for member in t:
            parts = member.name.split("/")
            if member.isfile() and parts[1] == "deps" and parts[2] in ("lib", "bin"):
                target = os.path.join(home, parts[2])
                os.makedirs(target, exist_ok=True)
                with t.extractfile(member) as source, open(os.path.join(target, parts[-1]), "wb") as f:
                    shutil.copyfileobj(source, f)


if __name__ == "__main__":
    print(venv())
    print(flink() if java()[0] else java()[1])
