# hivesink: make help lists the targets.
GO      ?= go
PYTHON  ?= python3
VENV    := .venv
export CGO_ENABLED = 0

.PHONY: help build demo test race lint services-up services-down integration whole guard bench-ingest bench-kafka bench-compaction bench-partitions bench-growth bench-peers fuzz clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

build: ## bin/hivesink, one static binary
	$(GO) build -trimpath -o bin/hivesink ./cmd/hivesink

demo: build ## the quickstart: a real sample into examples/out/
	rm -rf examples/out
	bin/hivesink run -c examples/flights.yaml
	@echo; echo "the table (first and last lines of its tree):"
	@cd examples/out && find flights -path flights/.hivesink -prune -o -print | sort > tree.txt && \
		head -12 tree.txt && echo "..." && tail -4 tree.txt && rm tree.txt
	@bin/hivesink fsck -c examples/flights.yaml

# A package may take longer than Go's ten minutes on a machine that is busy with others.
LIMIT = -timeout 30m

test: ## all tests; needs only Go
	$(GO) vet ./...
	$(GO) test $(LIMIT) ./...

# Packages where something runs beside something else, in the code, its tests or what
# these call.
BESIDE = go func|go [a-zA-Z.]+\(|[gG]o\(func|errgroup|Parallel\(\)|sync\.|atomic\.|storagetest\.|metastoretest\.|pipeline\.Open
race: ## the tests under the race detector (needs a C compiler), kill loops shortened
	packages=$$($(GO) list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r path dir; do \
		if grep -qE '$(BESIDE)' "$$dir"/*.go; then echo "$$path"; fi; done | grep -v /format/parquet$$); \
	CGO_ENABLED=1 HIVESINK_KILLS=4 $(GO) test -race -short $(LIMIT) $$packages
	CGO_ENABLED=1 $(GO) test -race $(LIMIT) -run AtOnce ./format/parquet # minutes of other tests, one after the other

lint: ## go vet, staticcheck and the dependency rules
	$(GO) vet ./...
	$(GO) vet -tags integration ./test/...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	$(GO) test ./internal/lint

$(VENV)/ready: test/readers/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r test/readers/requirements.txt
	touch $@

services-up: ## the servers of the integration tests, on loopback (SERVICES=names)
	$(GO) run ./test/services/cmd up $(SERVICES)

services-down: ## stop them and remove their data
	$(GO) run ./test/services/cmd down $(SERVICES)

# The servers are stopped whatever happens; what the tests said is the result.
integration: build $(VENV)/ready ## tests against real servers, and finished tables read by other engines
	$(GO) run ./test/services/cmd up
	status=0; \
	$(GO) test -tags integration -v -count=1 -p 1 -timeout 45m ./test/... && \
	$(VENV)/bin/python test/readers/check.py && \
	$(VENV)/bin/python test/readers/fuzz.py && \
	$(VENV)/bin/python test/readers/metastore.py || status=$$?; \
	$(GO) run ./test/services/cmd down; \
	exit $$status

WHOLE_ROWS ?= 5000000
whole: ## Kafka to HDFS and Hive Metastore: 5 M rows, ten kills, outages of a minute
	$(GO) run ./test/services/cmd up kafka-3 hdfs hms
	status=0; \
	HIVESINK_WHOLE_ROWS=$(WHOLE_ROWS) HIVESINK_KILLS=10 HIVESINK_OUTAGE=60s \
	$(GO) test -tags integration -v -count=1 -timeout 60m ./test/whole || status=$$?; \
	$(GO) run ./test/services/cmd down kafka-3 hdfs hms; \
	exit $$status

guard: ## what the hot paths cost, without a clock, beside benchmarks/guard.json
	$(GO) run ./benchmarks/guard

bench-ingest: build $(VENV)/ready ## the ingest path, whole and by stage, beside DuckDB; Kafka beside files
	$(VENV)/bin/python benchmarks/ingest.py

bench-kafka: build $(VENV)/ready ## the part of bench-ingest that reads from Kafka
	$(VENV)/bin/python benchmarks/ingest.py --only Kafka --no-stages --no-readers --out benchmarks/results/kafka.json

bench-compaction: build $(VENV)/ready ## few files of many, beside a plain copy, parquet-go and DuckDB (ARGS=-short)
	$(GO) run ./benchmarks/compaction $(ARGS)

bench-partitions: ## 10,000 open partitions: checkpoints, memory, files
	$(GO) run ./benchmarks/partitions -out benchmarks/results/partitions.json

ROWS ?= 5000000
bench-growth: build ## tables with up to a million files in their past; how fast the binary starts
	$(GO) run ./benchmarks/growth -json benchmarks/results/growth.json $(ARGS)

bench-peers: build ## beside Flink, Spark, Polars and DuckDB (ROWS=5000000, ARGS=--no-crash)
	$(PYTHON) benchmarks/peers/peers.py --rows $(ROWS) $(ARGS)

FUZZTIME ?= 15s
fuzz: ## every fuzz target for FUZZTIME (15s)
	@for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "== $$pkg $$target"; \
			$(GO) test $$pkg -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) || exit 1; \
		done; \
	done

clean: ## remove what the targets made
	rm -rf bin examples/out $(VENV)
