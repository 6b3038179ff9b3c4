# `make` alone lists the targets.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.8.0
# A copy of the Go vulnerability database: file:///DIRECTORY, or the address of a mirror.
VULNDB ?=
RACE ?=
RACEFLAG = $(if $(RACE),-race)
# Raced tests run on one processor each: with more, timers of virtual time that fire at once may
# crash the detector (go.dev/issue/78156). The processes that tests start use all.
RACETEST = $(if $(RACE),-race -cpu 1)
# Each step of a test has a limit, which grows when the machine is busy; all of a package has
# this one.
TESTFLAGS ?= -timeout 2h
# The detector lets each process sleep for a second at its end; there are many.
export GORACE ?= atexit_sleep_ms=100
FUZZTIME ?= 10s
# What only examples or tests need stays out of the module that users import.
MODULES = . examples tests internal/peers
# etcd takes a minute to compile: only lint-peers and bench-peers do.
PEERS_WITHOUT_OTHERS = . ./node ./ours
# All modules have their turn, whether those before are red or not.
each = @failed=; for module in $(MODULES); do (cd $$module && packages=./... && \
	if [ $$module = internal/peers ]; then packages="$(PEERS_WITHOUT_OTHERS)"; fi && $(1)) || \
	failed="$$failed $$module"; done; \
	if [ "$$failed" ]; then echo "failed, of the modules $(MODULES):$$failed" >&2; exit 1; fi
# Code of one goroutine, as internal/tidy makes sure of all but its tests: the race detector
# has nothing to find there, and takes ten times as long. RACE=1 tests it without.
PURE = ./elector/... ./scouting/... ./internal/lab/sim/... ./internal/lab/algorithm/... \
	./internal/lab/published ./internal/lab/replay
raced = $$(go list ./... | grep -vxF "$$(go list $(PURE))")
# The protocol itself, and the least of it that tests must run, in percent.
PROTOCOL = ./elector ./elector/detector ./scouting ./lsn
COVER = 95

.PHONY: help build bmqnode man test race vet lint lint-peers vuln kubernetes image fuzz bench bench-peers bench-values bench-many gray kills wakes cover scenarios-live article-live coordinator alerts kernel chaos-live clocks strangers upgrade soak explore kept chaos mutants lab study clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

build: ## compile everything; bin/bmqnode is the command
	go build -o bin/ ./...

bmqnode: ## compile the command alone, to bin/
	go build $(RACEFLAG) -o bin/ ./cmd/bmqnode

man: bmqnode ## write manual pages to bin/man: man -l bin/man/bmqnode.1
	bin/bmqnode man bin/man

test: ## run all tests (RACE=1: with the race detector)
	$(call each,$(if $(RACE),if [ $$module = . ]; then packages=$(raced); \
		go test $(TESTFLAGS) $(PURE) || pure=failed; fi;) \
		go test $(RACETEST) $(TESTFLAGS) $$packages && [ ! "$$pure" ])

race: ## run all tests with the race detector
	@$(MAKE) test RACE=1

vet: ## gofmt, go vet
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not gofmt-ed: $$unformatted"; exit 1; fi
	$(call each,go vet $(RACEFLAG) $$packages)

# Under RACE, what is compiled for the tests is what is looked at.
lint: vet ## gofmt, go vet, staticcheck, go mod tidy
	CGO_ENABLED=0 GOBIN=$(CURDIR)/bin go install -trimpath $(STATICCHECK)
	$(call each,GOFLAGS="$$(go env GOFLAGS) $(RACEFLAG)" $(CURDIR)/bin/staticcheck $$packages)
	$(call each,[ $$module = internal/peers ] || go mod tidy -diff)

lint-peers: lint ## lint what bench-peers compares with, too
	cd internal/peers && go vet ./... && $(CURDIR)/bin/staticcheck ./... && go mod tidy -diff

vuln: ## look for known vulnerabilities in what is called (VULNDB=file:///DIRECTORY: offline)
	GOBIN=$(CURDIR)/bin go install -trimpath $(GOVULNCHECK)
	$(call each,$(CURDIR)/bin/govulncheck $(if $(VULNDB),-db $(VULNDB)) $$packages)

# Outside CI, because of its downloads.
kubernetes: ## vet, lint and test the lock for Kubernetes controllers (KUBELOCK_ROUNDS=1: kills and stops)
	CGO_ENABLED=0 GOBIN=$(CURDIR)/bin go install -trimpath $(STATICCHECK)
	cd integrations/kubernetes && go mod tidy -diff && go vet ./... && $(CURDIR)/bin/staticcheck ./... && \
		go test $(RACETEST) $(TESTFLAGS) -count=1 ./...

image: ## make the file system of deploy/docker's image, and run a node in it
	BMQNODE_IMAGE=1 go -C tests test $(RACEFLAG) $(TESTFLAGS) -run 'TheImage|ThePods' ./deploy

# go test fuzzes one target of one package at a time. It would take a minute to shorten each new
# input, and do nothing else.
fuzz: ## run every fuzz target for a while (FUZZTIME=10s each)
	@grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed 's/:func / /' | while read -r file target; do \
		echo "$$target in $${file%/*}"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s "$${file%/*}" || exit 1; \
	done

bench: ## run the benchmarks, with allocations
	go test -run '^$$' -bench . -benchmem ./...

TRIALS ?= 30
LOAD ?= 60s
QUIET ?= 200ms
SYSTEMS ?=
# Copied as programs are that were installed: when a process dies Linux gives a file back faster
# that was written in large pieces than one of the linker.
bench-peers: ## compare with hashicorp/raft and etcd in 14 minutes (TRIALS=30 LOAD=60s QUIET=200ms SYSTEMS="raft etcd")
	cd internal/peers && go build -o $(CURDIR)/bin/peers/ ./...
	cd bin/peers && for program in *; do cp $$program copy && mv copy $$program; done
	bin/peers/peers -page docs/benchmarks.md -trials $(TRIALS) -load $(LOAD) -quiet $(QUIET) -systems "$(SYSTEMS)"

bench-values: ## compare with etcd how fast values are kept, in two minutes: that part of the page
	cd internal/peers && go build -o $(CURDIR)/bin/peers/ ./...
	bin/peers/peers -values -page docs/benchmarks.md

ELECTIONS ?= 1,1000,10000,30000,100000
bench-many: ## measure three nodes in many elections, in six minutes (ELECTIONS=1,1000,10000,30000,100000)
	cd internal/peers && go run . many -elections $(ELECTIONS)

GRAY_TIME ?= 40s
GRAY_RUNS ?= 1
gray: ## play gray failures with ours, hashicorp/raft and etcd, in 12 minutes (GRAY_TIME=40s each, GRAY_RUNS=1); needs root
	cd internal/peers && go build -o $(CURDIR)/bin/peers/ ./...
	bin/peers/peers gray -page docs/gray-failures.md -time $(GRAY_TIME) -runs $(GRAY_RUNS)

KILLS ?= 200
REALTIME ?=
SUPERVISED ?=
kills: ## kill the leader beside a busy process a core KILLS=200 times (with flags: REALTIME=1 SUPERVISED=1)
	REALTIME=$(REALTIME) go test -run '^$$' -bench \
		'Failover/lan/killed/nodes=5/busy=2$(if $(SUPERVISED),/supervised)/tls=off' -benchtime $(KILLS)x -timeout 0 ./cmd/bmqnode

WAKES ?= 100
wakes: ## stop a follower WAKES=100 times for longer than the inactivity interval, and let it go on
	go test -run '^$$' -bench StoppedFollower -benchtime $(WAKES)x -timeout 0 ./cmd/bmqnode

cover: ## statement coverage of the protocol's packages; fails below 95 %
	@go test -cover $(PROTOCOL) | awk -v least=$(COVER) '{ print } /^FAIL/ { low = 1 } \
		match($$0, /[0-9.]+% of statements/) { n++; if (substr($$0, RSTART) + 0 < least) low = 1 } \
		END { if (low || n < $(words $(PROTOCOL))) { print "want at least " least " % of each package"; exit 1 } }'

# The article's two cases, with and without scouting; then one of each kind of fault.
ARTICLE = leader-ping-pong leader-ping-pong-without-scouting non-sticky-leader non-sticky-leader-without-scouting
LIVE = $(ARTICLE) leader-crash graceful-stop transfer one-way-leader-mute slow-leader-long-pause partial-hub rolling-restart wiped-disk
scenario_files = $(foreach name,$(1),testdata/scenarios/$(name).yaml)

scenarios-live: ## replay a dozen scenarios on real processes, in under 5 minutes
	go run $(RACEFLAG) ./cmd/bmqnode replay --live --jobs 6 $(call scenario_files,$(LIVE))

article-live: ## replay the article's four cases on real processes
	go run $(RACEFLAG) ./cmd/bmqnode replay --live $(call scenario_files,$(ARTICLE))

coordinator: ## kill the leader of the sample application in a loop for a minute, and check what its processes did
	cd examples && COORDINATOR_TIME=60s go test $(RACEFLAG) -count=1 -timeout 5m -run TestTheLeaderIsKilledInALoop -v ./coordinator

alerts: ## raise on real processes every alert that can be raised there
	ALERTS_LONG=1 go -C tests test -count=1 -timeout 5m -run 'TestEachFaultRaisesItsAlert|TestAFastClock' ./deploy

KERNEL_ROUNDS ?= 12
KERNEL_TIME ?= 5m
kernel: ## put the kernel's faults to real processes: KERNEL_ROUNDS=12 of each, and at random for KERNEL_TIME=5m; needs root
	KERNELTEST_ROUNDS=$(KERNEL_ROUNDS) KERNELTEST_TIME=$(KERNEL_TIME) go -C tests test $(RACEFLAG) -count=1 -v -timeout 0 ./kerneltest

CHAOS_TIME ?= 10m
chaos-live: bmqnode ## break real processes at random for CHAOS_TIME=10m, and judge the history with porcupine; needs root
	CHAOS_TIME=$(CHAOS_TIME) KERNELTEST_BMQNODE=$(CURDIR)/bin/bmqnode go -C tests test $(RACEFLAG) -count=1 -v -timeout 0 -run 'TestChaosLive|TestTheJudge|TestTheSpecification' ./kerneltest

clocks: ## let wall clocks of real processes with TLS jump by years
	BMQNODE_CLOCKS=1 go -C tests test $(RACEFLAG) -count=1 -v -timeout 10m -run TestWallClocksThatJump ./deploy

STRANGERS_TIME ?= 10m
strangers: ## let strangers do what they can on every port of real processes for STRANGERS_TIME=10m
	STRANGERS_TIME=$(STRANGERS_TIME) go -C tests test $(RACEFLAG) -count=1 -v -timeout 0 -run TestStrangersOnEveryPort ./strangers

UPGRADE_FROM ?=
upgrade: ## upgrade real processes from an older revision node by node, and back, in two minutes (UPGRADE_FROM=: that before beats)
	UPGRADE_FROM=$(UPGRADE_FROM) go -C tests test $(RACEFLAG) -count=1 -v -timeout 10m -run TestARollingUpgradeAndBack ./deploy

SOAK_SEEDS ?= 1000
SOAK_TIME ?= 7m
SOAK_RUNS ?= 10000
soak: ## simulate SOAK_RUNS=10000 random schedules, and each scenario SOAK_SEEDS=1000 times in SOAK_TIME=7m
	SOAK_RUNS=$(SOAK_RUNS) go test -count=1 -run TestSwarm -v -timeout 0 ./internal/lab/sim -rapid.shrinktime 20s
	SOAK_SEEDS=$(SOAK_SEEDS) SOAK_TIME=$(SOAK_TIME) go test -count=1 -run Soak -v -timeout 0 ./internal/lab/replay

SEARCH_STATES ?= 15000000
explore: ## search the states of small clusters of the real machine (SEARCH_STATES=15000000 a scene; 0: all), and SPIN's model
	SEARCH_STATES=$(SEARCH_STATES) go test -count=1 -v -timeout 0 -run 'TestSearch$$' ./elector
	SEARCH_STATES=$(SEARCH_PAIRS) go test -count=1 -v -timeout 0 ./elector/pair
	SEARCH_DIVES=$(SEARCH_DIVES) go test -count=1 -v -timeout 0 -run TestDive ./elector
	SPIN_TIME=$(SPIN_TIME) go test -count=1 -v -timeout 0 -run TestSpin ./elector/spec

KEPT_TIME ?= 10m
KEPT_STOPS ?= 100
KEPT_LIVES ?= 1000
kept: ## measure what is promised, in 40 minutes (KEPT_LIVES=1000, KEPT_TIME=10m, KEPT_STOPS=100); needs root
	KEPT_LIVES=$(KEPT_LIVES) go test -count=1 -v -timeout 0 -run 'AMistakeAMonth|TestLossMovesNoLeader' ./internal/lab/sim ./cluster
	KEPT_TIME=$(KEPT_TIME) KEPT_STOPS=$(KEPT_STOPS) go test -count=1 -v -timeout 0 -run 'TestTheQualityOfServiceIsKept|TestLossMovesNoLeader' ./cmd/bmqnode
	unshare -n sh -c 'ip link set lo up && iptables -A INPUT -m statistic --mode random --probability 0.01 -j DROP && \
		KEPT_LOSS=0 KEPT_TIME=$(KEPT_TIME) go test -count=1 -v -timeout 0 -run TestLossMovesNoLeader ./cmd/bmqnode'

SEARCH_PAIRS ?= 3000000
SEARCH_DIVES ?= 5000
SPIN_TIME ?= 5m
CHAOS_SEEDS ?= 1000
chaos: ## play random schedules of faults with whole nodes and many elections in virtual time, and judge what they wrote with porcupine (CHAOS_SEEDS=1000)
	rm -rf bin/histories && mkdir -p bin/histories
	CHAOS_SEEDS=$(CHAOS_SEEDS) CHAOS_HISTORIES=$(CURDIR)/bin/histories go test $(RACETEST) -count=1 -run 'TestRandomSchedules|TestASeedGivesOneRun' -v -timeout 0 ./cluster/clustertest ./cluster/internal/loop
	KERNELTEST_HISTORY='$(CURDIR)/bin/histories/*.json' go -C tests test -count=1 -v -run TestAHistoryThatWasKept ./kerneltest

MUTANTS ?= 200
SEED ?= 1
mutants: ## break the protocol's code in MUTANTS=200 places, one at a time (SEED=1), and by hand: tests must fail
	cd tests && go run ./mutants -n $(MUTANTS) -seed $(SEED)
	cd tests && go test -count=1 -timeout 1h -run TestProtocolMutants ./mutants -all

LAB_SEEDS ?= 200
lab: ## compare all election algorithms, simulated, and write docs/laboratory.md (LAB_SEEDS=200)
	go run ./cmd/bmqnode lab --seeds $(LAB_SEEDS) -o .

study: ## measure the failure detectors anew, for docs/detectors.md
	go test ./elector/detector -run "TestStudy|Curves" -rewrite
	go test ./internal/lab/report -run TestPlotsOfStudies -update

clean: ## remove what was built
	rm -rf bin coverage.out
