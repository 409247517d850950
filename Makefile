# make help lists the targets. Everything that the build needs comes from the
# Go module proxy; what a target needs besides, it names or installs itself.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := build

GO      ?= go
# All that is compiled for this machine is compiled in one mode, programs, tests, go vet and staticcheck: what one of them made, the
# next finds in the cache of go. -trimpath makes it the same in every checkout, too; the tag leaves out what urfave/cli writes man pages by.
MODE := -trimpath -tags=urfave_cli_no_docs
export GOFLAGS := $(strip $(filter-out $(MODE),$(shell $(GO) env GOFLAGS)) $(MODE))
export CGO_ENABLED := 0
VERSION := $(shell sed -n 's/^## \[\{0,1\}\([0-9][^] ]*\).*/\1/p' CHANGELOG.md | head -n 1)
COMMIT  := $(shell git describe --always --dirty=+dirty --exclude='*' --abbrev=40 2>/dev/null)
LDFLAGS := -s -w -X strata/pkg/cli/release.version=$(VERSION) -X strata/pkg/cli/release.linkedCommit=$(COMMIT)
# All in one file; go build ./cmd/NAME makes a smaller one with a single program.
PROGRAMS := $(filter-out strata,$(patsubst cmd/%/main.go,%,$(wildcard cmd/*/main.go)))
ENGINE  ?= nextflow
RACE    ?=
NUMERIC ?=
SHORT   ?=
FUZZTIME ?= 5m
SOAK_KILLS ?= 1000
SOAK_FULL ?= 200
SOAK_HOSTILE ?= 2000
SOAK_PAGE ?= docs/reliability.md
QUALITY ?=
QUALITY_PAGE ?= docs/quality.md
TILE_SEEDS ?= 1
TILE_PEERS ?=
SCALE_PAGE ?= docs/scale.md
MEMORY_PAGE ?= docs/memory.md
BENCH_GIB ?= 2
# go test that counts and names skipped tests, and fails when one is skipped for a reason that is not in tests/skips.txt. It
# does not vet: make lint has.
GOTEST  := GO='$(GO)' $(GO) run ./tests/gotest tests/skips.txt
# Files in packages have the time of the commit.
DIST = SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 315532800)} $(GO) run ./scripts/dist -version '$(VERSION)' -ldflags '$(LDFLAGS)'
PREFIX ?= /usr/local
ALL_NAMES ?=
TARGETS ?= linux/amd64,linux/arm64,darwin/arm64,darwin/amd64
NAME ?=
LINKS ?= build/links
IMAGE ?= build/strata.sif

.PHONY: help build dist conda install debian-names module image image-gpu links quick test test-race full lint vuln fuzz soak quality scale size kernels kernels-check gpu-verify gpu-model test-cuda-double demo demo-scan demo-tiles pictures bench interop test-nextflow test-report test-viewers test-slurm test-menu test-install test-server-setup test-apptainer test-arm64 clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 20

build: ## build strata into bin/, with a link by the name of each program, and into nextflow/bin/; what does not change keeps its time
	$(GO) build -ldflags '$(LDFLAGS)' -o build/bin/strata ./cmd/strata
	@for name in $(PROGRAMS); do ln -sfn strata build/bin/$$name; done
	@scripts/renew.sh build/bin/strata $(PROGRAMS:%=build/bin/%) bin
	@scripts/renew.sh --link bin/strata $(PROGRAMS:%=bin/%) nextflow/bin

image: build ## container image build/strata.sif for Apptainer, made without it (Debian packages from a mirror)
	@scripts/image.sh $(IMAGE)

image-gpu: build ## the same with NVIDIA's cuFile and nvCOMP: build/strata-gpu.sif
	@scripts/image.sh $(IMAGE:.sif=-gpu.sif) --with_nvidia

dist: ## archives, .deb, wheels, SBOM and SHA256SUMS for Linux and macOS in build/dist, the same bytes every time
	@$(DIST) -targets '$(TARGETS)' -out build/dist

install: ## strata, its links, man pages and completions into PREFIX (default /usr/local), below DESTDIR if set; ALL_NAMES=1: also links of other programs' names
	@$(DIST) -install '$(DESTDIR)$(PREFIX)' $(if $(ALL_NAMES),-all-names)

debian-names: ## look up which names of our programs other packages of Debian have, in its indexes of files; writes packaging/debian/names.tsv
	@scripts/debian-names.sh --write

conda: ## a conda package of what make dist has made for this machine in build/conda, tested (rattler-build from PyPI)
	@$$(scripts/venv.sh build/venv-conda packaging/conda/requirements.txt) packaging/conda/build.py '$(VERSION)' build/dist build/conda

module: ## a copy of the sources that can be imported as NAME=host/owner/strata, in build/module
	@$(GO) run ./scripts/module -name '$(NAME)' -out build/module

links: build ## links by the names of the programs that ours replace in LINKS (default build/links), for the front of PATH
	@scripts/links.sh bin $(LINKS)

quick: ## lint, build and short tests of what changed since origin/main, with the race detector too, in three minutes
	@scripts/quick.sh

test: ## all Go tests, of programs as shipped
	@scripts/need.sh g++ g++
	@scripts/need.sh mksquashfs squashfs-tools
	$(GOTEST) -timeout=30m -vet=off work

test-race: ## short Go tests with the race detector: of all packages that share memory between goroutines, or those in RACE
	@scripts/need.sh gcc gcc
	@scripts/need.sh g++ g++
	@scripts/need.sh mksquashfs squashfs-tools
	CGO_ENABLED=1 $(GOTEST) -short -race -vet=off $(or $(RACE),$$(scripts/concurrent.sh ./cmd/... ./pkg/...))

full: ## what .ci/run tries in a short case only, whole: race detector, arm64, SLURM, packages, benchmarks, GPU pack, soak (an hour or less)
	@.ci/run full

test-arm64: ## build and vet for arm64; run the numeric tests, or those of the packages in NUMERIC, under qemu-user where it is
	@scripts/test-arm64.sh $(NUMERIC)

lint: ## gofmt, go vet, staticcheck, shellcheck where it is
	@bad=$$(gofmt -l cmd pkg tests lab scripts); if [ -n "$$bad" ]; then echo "gofmt: $$bad"; exit 1; fi
	$(GO) vet work
	$(GO) tool staticcheck work
	@for module in . lab; do GOWORK=off $(GO) list -C $$module -deps -test ./... >/dev/null; done # each is whole without go.work
	@scripts/lint.sh

vuln: ## govulncheck (needs a network)
	$(GO) run golang.org/x/vuln/cmd/govulncheck@latest work

fuzz: ## every fuzz target for FUZZTIME (default 5m)
	@scripts/fuzz.sh $(FUZZTIME)

soak: build ## kills, full disks, damaged inputs, fuzzing (an hour or more, as root); writes docs/reliability.md
	$(GO) run ./tests/soak -bin bin -kills $(SOAK_KILLS) -full $(SOAK_FULL) -hostile $(SOAK_HOSTILE) -fuzz $(FUZZTIME) -json build/soak.json -page '$(SOAK_PAGE)'

quality: build ## volumes against the truth of phantoms, and tiles cut from pictures (TILE_SEEDS: how often each; TILE_PEERS=1: other programs beside stitch); writes docs/quality.md
	$(GO) run ./tests/quality -bin bin -only '$(QUALITY)' -page '$(QUALITY_PAGE)' -linumpy '$(LINUMPY)' -seeds '$(TILE_SEEDS)' $(if $(TILE_PEERS),-peers)

scale: build ## the chain on SCALE_GB of raw frames (default 40), a slice at a time; writes docs/scale.md
	@scripts/scale.sh '$(SCALE_PAGE)'

memory: build ## the peak memory of the workflow's programs on MEMORY_GB (default 20); writes docs/memory.md
	@scripts/memory.sh '$(MEMORY_PAGE)'

size: ## what the bytes of the program are, and what its start costs; writes docs/size.md
	$(GO) build -ldflags -w -o build/size/strata ./cmd/strata
	$(GO) run ./lab/size build/size/strata

kernels: ## compile the CUDA kernels to PTX (build/kernels) and to what ships, which is in git (NVRTC from PyPI)
	@scripts/kernels.sh

test-cuda-double: ## the tests' GPU: its prototypes, its interpreter, the kernels under sanitizers (SHORT=1: without NVIDIA's other libraries, races and sanitizers)
	@SHORT='$(SHORT)' tests/cudaemu/check.sh

kernels-check: ## are the packed PTX and machine code what the sources compile to, for every GPU from V100 on?
	@scripts/kernels.sh check

gpu-verify: build ## a pack that checks this tree on a machine with a GPU; here it is tried on a double
	@scripts/gpu-verify.sh

gpu-model: build ## expected seconds of all stages on processors and GPUs, by a double's virtual clock; writes docs/gpu-model.md
	$(GO) run ./lab/gpumodel -bin bin

demo: ## phantom mosaics through the whole workflow (ENGINE=none: without Java)
	@scripts/demo.sh $(ENGINE)

demo-scan: ## a slide scan of a phantom, from CZI to a volume whose tiles fit
	@scripts/demo-scan.sh

demo-tiles: ## TIFF tiles that tifffile writes, from a folder of files to a stitched image
	@scripts/demo-tiles.sh

pictures: build ## the pictures of README and docs, from demo-out; records what they are made from
	@scripts/docs-pictures.sh

bench: build ## peers and us in one run; writes docs/benchmarks* and README's table
	@lab/run.sh

interop: build ## what we write, read by zarr-python, tensorstore and zarrs; and the other way round
	@lab/interop/run.sh

test-nextflow: build ## the workflow on the real engine, local executor
	@tests/nextflow/run.sh

test-report: build ## the quality report in headless Chromium, and in MultiQC (from PyPI)
	@tests/report/run.sh

test-viewers: build ## napari and Neuroglancer open what view serves (1 GB from PyPI)
	@tests/viewers/run.sh

test-slurm: build ## the workflow on a one-node SLURM (root); SHORT=1: one run of it
	@SHORT='$(SHORT)' tests/slurm/run.sh

test-server-setup: build ## the scripts for administrators, on small sources and with doubles of what they call
	@tests/server_setup/run.sh

test-install: build ## packages as users install them: the same bytes twice, in a Debian without Go, a wheel, a conda package (root)
	@tests/install/run.sh

test-menu: build ## the menu of the image: arguments, screens, a run
	@tests/menu/run.sh

test-apptainer: image ## images, signatures, definition files and the workflow with the Apptainer of this machine
	@tests/apptainer/run.sh

clean: ## remove what was built
	rm -rf bin nextflow/bin build demo-out
