# proofrack. `make help` lists what there is.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Every module of the workspace, as package patterns.
MODULES = $(shell go list -m)
PACKAGES = $(addsuffix /...,$(MODULES))

# Packages with tests on the toy circuit, which production builds cannot reach.
TOY = github.com/proofrack/proofrack/shared/proof/catalog github.com/proofrack/proofrack/worker-gpu/...

# NVIDIA's header, compiled where there is a C compiler, marks old calls as deprecated.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

# Where long tests and the demo keep large files.
SCRATCH ?= scratch
FUZZTIME ?= 30s
SIM_SEEDS ?= 40
SIM_TIME ?= 1h
SIM_FIRST ?= 1000
BENCH ?= .

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  %-12s %s\n", $$1, $$2 }'

.PHONY: build
build: ## build bin/proofrack
	mkdir -p bin
	go build -trimpath -o bin/proofrack ./cli

.PHONY: demo
demo: build ## start a rack in one process, seal a 2 KiB sector, submit it and verify the proof
	./docs/demo.sh bin/proofrack $(SCRATCH)/demo

.PHONY: servers
servers: ## see to it that the servers which the tests start are installed
	@./tools/servers.sh

.PHONY: test
test: servers cuda-host ## run every package's tests, with real NATS and Redis, and one real 2 KiB sector end to end
	go test -timeout 20m $(filter-out %/e2e/...,$(PACKAGES))
	go test -timeout 20m -parallel 3 github.com/proofrack/proofrack/e2e/...
	go test -timeout 10m -tags toy $(TOY)

.PHONY: sim
sim: ## simulate the rack under faults in virtual time, from SIM_SEEDS seeds, and find each broken build
	SIM_EXACT=1 SIM_SEEDS=$(SIM_SEEDS) go test -tags long -timeout 30m -count 1 -v -run 'Simulated|BrokenBuild|LookAgain' \
		./coordinator/internal/sim

.PHONY: sim-long
sim-long: ## simulate for SIM_TIME (1h) from SIM_FIRST on
	SIM_EXACT=1 SIM_TIME=$(SIM_TIME) SIM_FIRST=$(SIM_FIRST) go test -timeout 0 -count 1 -v -run Simulated ./coordinator/internal/sim

.PHONY: test-long
test-long: servers cuda-host ## also the tests that take minutes (build tag long)
	go test -tags long -timeout 240m -p 1 $(PACKAGES)
	go test -tags 'toy long' -timeout 60m -p 1 $(TOY)

.PHONY: drill-long
drill-long: servers ## the lasting faults of the field reports in full, on shipped timers (a quarter of an hour), and an hour of faults on three NATS servers
	DRILL_SCALE=1 go test -tags long -count 1 -timeout 60m -parallel 9 -v -run '^TestDrill' github.com/proofrack/proofrack/e2e
	HISTORY_MINUTES=60 go test -tags long -count 1 -timeout 90m -v -run '^TestLongHistory' github.com/proofrack/proofrack/e2e

# Jaeger is a module of its own, whose program is built once and kept outside of the tree. Other flags would compile
# all of it anew.
JAEGER_VERSION = $(shell awk '$$1 == "github.com/jaegertracing/jaeger" { print $$2 }' tools/jaeger/go.mod)
JAEGER ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/proofrack/jaeger-$(JAEGER_VERSION)

.PHONY: e2e-jaeger
e2e-jaeger: servers ## check a job's trace in a real Jaeger (which is built once, in seven minutes)
	test -x "$(JAEGER)" || (cd tools/jaeger && GOWORK=off go build -ldflags='-s -w' -o "$(JAEGER)" \
		github.com/jaegertracing/jaeger/cmd/jaeger)
	E2E_JAEGER="$(JAEGER)" go test -count 1 -timeout 20m -v -run '^TestTraceOf' github.com/proofrack/proofrack/e2e

.PHONY: test-huge
test-huge: ## prove one full 32 GiB partition (build tag huge; half an hour, 60 GB of disk, 18 GiB of memory)
	PROOFRACK_SCRATCH=$(abspath $(SCRATCH)) go test -tags huge -timeout 600m -v -run Huge ./shared/prover

.PHONY: check
check: ## linters and house style
	@unformatted=$$(gofmt -s -l $$(go list -m -f '{{.Dir}}')); \
	if [ -n "$$unformatted" ]; then echo "gofmt -s is needed on:"; echo "$$unformatted"; exit 1; fi
	go vet $(PACKAGES)
	go vet -tags 'long huge bench' $(PACKAGES)
	go vet -tags 'toy long' $(PACKAGES)
	cd tools && go run ./tidy
	cd tools && go tool staticcheck $(PACKAGES)
	cd tools && go tool go-errorlint $(PACKAGES)

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (30s)
	@go test -list '^Fuzz' $(PACKAGES) | awk '/^Fuzz/ { t[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, t[i]; n = 0 }' | \
	while read -r package target; do \
		echo "== $$package $$target"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$package"; \
	done

.PHONY: bench
bench: build bench-rack ## measure synthesis, proving and the rack (the recipes of docs/bench)
	./docs/bench/run.sh bin/proofrack $(SCRATCH)/bench

.PHONY: bench-rack
bench-rack: servers ## measure the rack with real servers and programs (as root, eight minutes on a quiet machine)
	./docs/bench/rack.sh $(SCRATCH)/bench-rack

PICTURES = $(abspath $(SCRATCH))/screenshots

.PHONY: screenshots
screenshots: servers ## make the pictures of docs/pictures: the web page in a browser and proofrack top, of a real rack
	SCREENSHOTS=$(PICTURES) go test -count 1 -timeout 10m -run '^TestOperatorFollows' github.com/proofrack/proofrack/e2e
	mkdir -p docs/pictures
	cp $(PICTURES)/rack.png $(PICTURES)/top.svg docs/pictures/

.PHONY: plan-history
plan-history: build ## plan the published history of a one-box prover, into docs/bench
	./bin/proofrack plan history --pictures docs/bench > bin/plan-history.md
	mv bin/plan-history.md docs/bench/plan-history.md

.PHONY: bench-go
bench-go: ## run every Go benchmark once
	go test -run '^$$' -bench '$(BENCH)' -benchtime 1x $(PACKAGES)

include cuda/cuda.mk

.PHONY: clean
clean: ## remove what the other targets made
	rm -rf bin cuda/build $(SCRATCH)
