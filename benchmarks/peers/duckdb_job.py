"""Runs duckdb.sql: duckdb_job.py DATA OUT CODEC THREADS."""

import os
import string
import sys

import duckdb

data, out, codec, threads = sys.argv[1:]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "duckdb.sql")) as f:
    statement = string.Template(f.read()).substitute(DATA=data, OUT=out, CODEC=codec)
duckdb.connect(config={"threads": threads}).execute(statement)
