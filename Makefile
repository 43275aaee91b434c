# weir: measure what every node, pod and container uses, remember it for a while,
# and serve it to whoever decides. A bare `make` lists the targets.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
GO          ?= go
BIN         := bin
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS     := -s -w -X github.com/weir-metrics/weir/cmd/app/version.release=$(VERSION)
COMMANDS    := weir kubectl-weir weir-simulate
FUZZTIME    ?= 20s
FUZZ        ?= .
BENCH       ?= .
BENCHCOUNT  ?= 1
IMAGE       ?= weir.invalid/weir:dev
TOOL        := $(GO) tool -modfile=internal/tools/go.mod
RELEASE     := $(BIN)/release
RELEASE_TOOL := $(GO) tool -modfile=internal/tools/release/go.mod
HELM        := $(GO) tool -modfile=internal/tools/helm/go.mod helm

export CGO_ENABLED ?= 0
# The same everywhere, so that tests and commands share what was compiled, and tests
# what was vetted.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath -vet=all)
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null)

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z][a-z0-9-]*:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the commands into bin/
	@mkdir -p $(BIN)
	$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/ $(addprefix ./cmd/,$(COMMANDS))

PREFIX ?= /usr/local

.PHONY: install
install: build ## install weir and kubectl-weir, man pages and completions of shells (DESTDIR, PREFIX=/usr/local)
	install -D -t $(DESTDIR)$(PREFIX)/bin $(BIN)/weir $(BIN)/kubectl-weir
	printf '#!/bin/sh\nexec kubectl-weir __complete "$$@"\n' > $(DESTDIR)$(PREFIX)/bin/kubectl_complete-weir
	chmod 755 $(DESTDIR)$(PREFIX)/bin/kubectl_complete-weir
	$(GO) run ./deploy/man $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,bash-completion/completions zsh/site-functions fish/vendor_completions.d)
	$(BIN)/weir completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/weir
	$(BIN)/weir completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_weir
	$(BIN)/weir completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/weir.fish

# go build names each package that it compiles; every fiftieth is printed, and everything else.
progress = 2>&1 | awk '!/^[a-z][^ :]*$$/ {print} /^[a-z][^ :]*$$/ && ++n % 50 == 0 {print "  compiled " n " packages, the last one " $$0} {fflush()}'

.PHONY: run
run: ## build weir alone, then measure this machine: http://127.0.0.1:8087, and bin/weir top cgroups
	@echo 'Compiling cmd/weir. The first time, this is 1,600 packages: minutes. Afterwards it is seconds.'
	@mkdir -p $(BIN)
	@$(GO) build -v -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/weir $(progress)
	$(BIN)/weir run $(ARGS)

.PHONY: test
test: ## all tests that need no root and no cluster (make verify tests the Helm chart)
	@echo 'Compiling weir, then its tests. The first time, this takes minutes. Afterwards it is seconds.'
	@$(GO) build -v ./cmd/app $(progress)
	@echo 'Testing. The result of each package follows when it is known.'
	$(GO) test -timeout 8m ./...
	$(GO) test -C deploy/image ./...
	$(GO) test -C test/bench ./peers ./process

.PHONY: parity
parity: ## the autoscaler beside Kubernetes' own code, rules beside prometheus-adapter, OTLP to a collector's receiver (minutes to compile them, once)
	$(GO) test -C test/parity -timeout 8m ./...

# Packages that start goroutines and compile quickly. The others follow in make nightly.
RACE ?= ./manager/... ./sinks/... ./sources/shared/... ./sources/player/... ./eviction/notify/...

.PHONY: race
race: ## tests under the race detector (needs a C compiler; RACE names packages, make nightly takes all)
	CGO_ENABLED=1 $(GO) test -race -timeout 20m $(RACE)

.PHONY: nightly
nightly: ## what is too slow for each change: race detector on all, longer fuzzing, more random cases, other systems (5 hours)
	$(MAKE) race RACE=./...
	$(MAKE) fuzz FUZZTIME=1m
	$(GO) test -C test/parity -timeout 60m -cases 200000 .
	$(GO) test -C test/parity -timeout 60m ./promadapter -configs 500 -every 1
	$(GO) test -C test/parity/vpa -timeout 60m -cases 100000
	$(GO) test ./test/exact -timeout 60m -seeds 100000
	$(GO) test ./test/situations -timeout 30m -run TestSoak -soak 24 -v
	$(MAKE) build && $(GO) test -tags e2e -count 1 -timeout 40m -parallel 12 -v ./test/faults -args -long
	$(GO) test -tags e2e -count 1 -timeout 60m -v ./test/faults -run TestSoak -args -soak=45m
	$(GO) test -tags e2e -count 1 -timeout 30m -v ./eviction/execute -run TestManyNodesAtOnce
	$(MAKE) e2e WEIR_CLUSTER_KUBERNETES=1.36 E2E='$(E2E_CLUSTER)' E2E_SKIP=
	$(MAKE) e2e-v2 E2E_V2=. ARGS='-latency-runs=20 -latency-of=weir,earlyoom,kubelet,weir-swap,systemd-oomd-swap'
	$(MAKE) e2e-v2 WEIR_CLUSTER_DEBIAN=trixie E2E_V2=TestFrozen
	$(MAKE) e2e-v2 WEIR_CLUSTER_DEBIAN=forky E2E_V2=TestFrozen
	$(MAKE) reproduce
	$(MAKE) arm64

.PHONY: lint
lint: ## names and texts (test/lint), and golangci-lint, built from its module (minutes the first time)
	$(GO) test ./test/lint
	$(TOOL) golangci-lint run ./...

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (20s), or those whose "package name" matches FUZZ
	@log=$$(mktemp); trap 'rm -f $$log' EXIT; \
	for module in . deploy/image test/bench; do \
	$(GO) list -C $$module -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r pkg dir; do \
		for target in $$(grep -hos '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go | sed 's/^func //'); do \
			echo "$$pkg $$target" | grep -q -e '$(FUZZ)' || continue; \
			echo "== $$pkg $$target"; \
			$(GO) test -C $$module -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "$$pkg" </dev/null | tee $$log || \
				if grep -q 'Failing input' $$log || ! grep -q 'context deadline exceeded' $$log; then exit 1; fi; \
		done; \
	done || exit 1; done # the go command may call the end of its time an error; a failing input is one

# What a target finds stays in Go's build cache, so a later run goes on from there. A failing input is written to the package's testdata/fuzz: keep it there.
.PHONY: fuzz-long
fuzz-long: FUZZTIME = 1h
fuzz-long: fuzz ## each fuzz target for an hour (FUZZTIME), or one: FUZZ='kubelet/resource FuzzParse$$'

.PHONY: bench
bench: ## benchmarks of every stage: time, bytes and allocations per pod (BENCH, BENCHCOUNT)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCHCOUNT) -timeout 30m ./...
	$(GO) test -C test/parity -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCHCOUNT) -timeout 30m ./...

.PHONY: bench-parsers
bench-parsers: ## parsers alone, beside textparse and JSON libraries
	$(GO) run -C test/bench ./parsers $(ARGS)

.PHONY: bench-scale
bench-scale: build ## CPU, memory and freshness of one weir over the number of nodes (ARGS)
	$(GO) run -C test/bench ./scale $(ARGS)

# Prometheus is built without service discovery, which the benchmark does not use.
.PHONY: bench-senders
bench-senders: build ## what sending costs, beside vmagent and Prometheus in agent mode (half an hour; minutes to build them, once; ARGS)
	$(GO) build -C test/bench/senders/vmagent -ldflags '-s -w' -o $(CURDIR)/$(BIN)/vmagent github.com/VictoriaMetrics/VictoriaMetrics/app/vmagent
	$(GO) build -C test/bench/senders/prometheus -tags remove_all_sd -ldflags '-s -w' -o $(CURDIR)/$(BIN)/prometheus github.com/prometheus/prometheus/cmd/prometheus
	$(GO) run -C test/bench ./scale --senders --nodes 1000 $(ARGS)

.PHONY: bench-peers
bench-peers: build ## weir beside metrics-server under a real API server (root; 1.5 hours, minutes with ARGS=--quick)
	$(GO) run -C test/bench ./peers $(ARGS)

write_image = $(GO) run -C deploy/image . --name $(IMAGE) --binary "$(CURDIR)/$(1):/weir" --out "$(CURDIR)/$(2)" \
	--label title=weir --label version=$(VERSION) --label licenses=Apache-2.0 --label source=https://github.com/weir-metrics/weir

.PHONY: image
image: build ## write a container image of bin/weir, without any registry: bin/weir-image.tar
	$(call write_image,$(BIN)/weir,$(BIN)/weir-image.tar)

.PHONY: push
push: build ## push that image to your registry: make push IMAGE=REGISTRY/weir:TAG
	$(call write_image,$(BIN)/weir,$(BIN)/weir-image.tar) --push

# The files of a release: command/system/architecture.
RELEASED := weir/linux/amd64 weir/linux/arm64 $(addprefix kubectl-weir/,linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64)

# Where the files of a release will be. krew's manifest names them there.
RELEASE_URL ?= https://github.com/weir-metrics/weir/releases/download/$(VERSION)

.PHONY: release
release: ## programs, images, Helm chart, manifest for krew, SBOMs (CycloneDX), checksums and provenance of this commit: bin/release
	rm -rf $(RELEASE) && mkdir -p $(RELEASE)
	for released in $(RELEASED); do \
		IFS=/ read -r command os arch <<<"$$released"; \
		file=$(RELEASE)/$$command-$$os-$$arch; [ $$os != windows ] || file=$$file.exe; \
		GOOS=$$os GOARCH=$$arch $(GO) build -ldflags '$(LDFLAGS)' -o $$file ./cmd/$$command; \
		$(RELEASE_TOOL) cyclonedx-gomod bin -json -noserial -notimestamp -std -version '$(VERSION)' -output $$file.cdx.json $$file; \
	done
	$(GO) run ./deploy/krew '$(VERSION)' '$(RELEASE_URL)' LICENSE $(RELEASE)
	for arch in amd64 arm64; do $(call write_image,$(RELEASE)/weir-linux-$$arch,$(RELEASE)/weir-image-linux-$$arch.tar); done
	cp -RL deploy/helm/weir $(RELEASE)/chart # files instead of links, with the time of the commit
	find $(RELEASE)/chart -exec touch -d @$(SOURCE_DATE_EPOCH) {} +
	$(HELM) package $(RELEASE)/chart --app-version '$(VERSION)' $(if $(filter v%,$(VERSION)),--version $(VERSION:v%=%)) --destination $(RELEASE)
	rm -rf $(RELEASE)/chart
	$(GO) run ./deploy/provenance $(RELEASE)/* >$(BIN)/provenance.json && mv $(BIN)/provenance.json $(RELEASE)/
	cd $(RELEASE) && sha256sum * >../SHA256SUMS && mv ../SHA256SUMS .

.PHONY: reproduce
reproduce: release ## build the release again in another folder, from empty caches, and compare (20 minutes)
	folder=$$(mktemp -d); trap 'rm -rf $$folder' EXIT; \
	git clone -q . $$folder/weir; \
	GOCACHE=$$folder/cache $(MAKE) -C $$folder/weir release VERSION='$(VERSION)'; \
	diff $(RELEASE)/SHA256SUMS $$folder/weir/$(RELEASE)/SHA256SUMS && echo "both releases are equal, byte for byte"

# Packages that need another machine's kernel, programs or time are left out.
.PHONY: arm64
arm64: ## tests of the pure packages as arm64 programs, in emulation (needs qemu-user)
	GOARCH=arm64 $(GO) test -exec qemu-aarch64 -timeout 30m ./metric/... ./processors/... ./cluster/resourceusage/... ./sinks/memory/... ./internal/recording/... ./eviction ./autoscaler ./internal/humanize

.PHONY: vulncheck
vulncheck: ## known vulnerabilities in what the programs call (needs the Go vulnerability database)
	$(RELEASE_TOOL) govulncheck ./...

# Tests in a real cluster. The other end-to-end tests need none.
E2E_CLUSTER := ./test/cluster/... ./test/install/... ./test/apis/... ./test/node/...
E2E         ?= ./eviction/notify ./eviction/guard ./eviction/execute/cri ./sources/host/disk ./test/local/... ./test/faults ./test/ui/... $(E2E_CLUSTER)

# Tests that only make nightly runs: they take minutes, the first because it builds another kubectl.
E2E_SKIP ?= TestKubectlOfEachRelease/1.36|TestDeathMatrix

.PHONY: e2e
e2e: build image ## the built commands on this machine, on simulated kubelets and in a real cluster (root; minutes to build it, once; E2E names packages)
	$(GO) run ./test/cluster build
	$(HELM) version --short
	test/e2e.sh -tags e2e -count 1 -timeout 60m -p 1 -parallel 12 -skip '$(E2E_SKIP)' $(E2E)
	$(if $(filter ./test/node%,$(E2E)),$(MAKE) e2e-v2)

# Tests of test/node that run on the virtual node each time. make nightly runs all.
E2E_V2 ?= TestFrozen|TestPrivileges|TestKills

.PHONY: e2e-v2
e2e-v2: build image ## test/node on a virtual node with cgroup version 2 (root; E2E_V2 names tests, ARGS are theirs)
	$(GO) test -tags e2e -count 1 -timeout 150m -v ./test/node -run '$(E2E_V2)' -args -node=v2 $(ARGS)

.PHONY: cluster
cluster: ## start a real Kubernetes cluster on this machine and leave it running (root); ends with: go run ./test/cluster down
	$(GO) run ./test/cluster up

.PHONY: generate
generate: ## write the pages derived from code
	$(GO) run ./test/docs/generate

.PHONY: resize-evaluation
resize-evaluation: ## write docs/resize-evaluation.md from public traces, of which TRACES has the checkouts (test/traces/convert.go names them)
	$(GO) run ./test/traces evaluate '$(TRACES)' >$(BIN)/resize-evaluation.md && mv $(BIN)/resize-evaluation.md docs/

.PHONY: pictures
pictures: ## take the pictures of the page for docs/images (chromium)
	$(GO) test -tags e2e -count 1 ./test/ui -run TestPictures -args -docs=$(CURDIR)/docs/images

.PHONY: size
size: ## lines of Go by room: physical lines, without tests, generated files and test/
	@git ls-files '*.go' ':!test' ':!*_test.go' | xargs awk ' \
		{lines[FILENAME]++} \
		/^\/\/ Code generated .* DO NOT EDIT\.$$/ {generated[FILENAME] = 1} \
		END { \
			for (file in lines) if (!(file in generated)) {split(file, path, "/"); rooms[path[1]] += lines[file]; total += lines[file]} \
			for (room in rooms) printf "%7d %s\n", rooms[room], room; \
			printf "%7d in all\n", total \
		}' | sort -rn

.PHONY: verify
verify: ## formatting, generated pages, go.mod, the Helm chart (Helm is built the first time: minutes)
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "not formatted; run gofmt -w on:"; echo "$$out"; exit 1; fi
	$(GO) test -count 1 ./test/docs ./test/rooms # the cache does not know which files go list reads
	$(GO) mod tidy -diff
	cd deploy/image && $(GO) mod tidy -diff
	cd test/parity && $(GO) mod tidy -diff
	cd test/parity/vpa && $(GO) mod tidy -diff
	cd test/bench && $(GO) mod tidy -diff && $(GO) vet ./peers ./scale
	@echo 'Compiling Helm, then testing the chart. The first time, this takes minutes.'
	$(HELM) version --short # compiled here, and not within the time limit of the tests
	$(GO) test ./deploy -args -helm

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BIN)
