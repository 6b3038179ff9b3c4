# `make` alone lists the targets.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
RACE ?=
TESTFLAGS = $(if $(RACE),-race) -timeout 8m

.PHONY: help build test race lint bench cover clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

build: ## compile everything
	go build ./...

test: ## run all tests (RACE=1: with the race detector)
	go test $(TESTFLAGS) ./...

race: ## run all tests with the race detector
	@$(MAKE) test RACE=1

lint: ## gofmt, go vet, staticcheck, go mod tidy
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not gofmt-ed: $$unformatted"; exit 1; fi
	go vet ./...
	go run $(STATICCHECK) ./...
	go mod tidy -diff

bench: ## run the benchmarks, with allocations
	go test -run '^$$' -bench . -benchmem ./...

cover: ## statement coverage of the protocol's packages
	go test -cover ./elector ./scouting ./lsn

clean: ## remove what was built
	rm -rf bin coverage.out
