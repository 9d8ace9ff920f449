# Tools are pinned in tools/go.mod, out of the way of whoever imports the SDK.
TOOL = go tool -modfile=tools/go.mod

# Modules of their own, so that who imports the SDK does not get what they need.
MODULES = collector/grpcstat collector/otelstat collector/sentinelstat \
	collector/ginstat collector/echostat collector/echov5stat collector/chistat dashboards/gen

# What tests the rules of dashboards/rules; built if empty, which takes some minutes the first time.
PROMTOOL ?=

# The packages that several goroutines run through.
CONCURRENT = ./leap ./node ./collector/... ./exporter/... ./cmd/windowstat/internal/replay

FUZZTIME ?= 1m
HAMMER ?= 2m

.PHONY: help run test e2e paused attack unit race 386 modules dashboards rules lint fmt bench quick hammer storm kill full fuzz

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "%-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## run the demo service under load until Ctrl-C; metrics at http://127.0.0.1:9719/metrics
	@dir=$$(mktemp -d) && go build -o $$dir/windowstat ./cmd/windowstat && \
		{ trap : INT; $$dir/windowstat demo; status=$$?; rm -r $$dir; exit $$status; }

test: lint unit race 386 modules ## everything that must pass before a change lands

e2e: ## the real Prometheus, VictoriaMetrics and chromium: some two minutes, and up to ten the first time, when it builds them
	cd e2e && go mod tidy -diff && go vet ./... && go tool -modfile=$(CURDIR)/tools/go.mod staticcheck ./... && go test -v -count=1 -timeout 40m ./...

paused: ## twenty minutes of servers that stand still now and then
	cd e2e && WINDOWSTAT_E2E_PAUSED=20m go test -v -count=1 -timeout 40m -run TestPaused .

attack: ## slow readers, floods, made-up names, and five thousand clients that hold what they can: some fifteen minutes
	go test -v -count=1 -timeout 20m -run 'SlowReadersBlindNobody|MadeUpCursors' ./exporter/prom -attack
	go test -v -count=1 -run 'NobodyHoldsTheDoor|PollsInALoop|SlowViewers|StreamsAreShared' ./exporter ./exporter/live
	cd e2e && WINDOWSTAT_E2E_ATTACK=5000 go test -v -count=1 -timeout 40m -run TestProxyAttacked .

unit: ## the tests
	go test ./...

race: ## the tests of the concurrent packages under the race detector (needs gcc)
	CGO_ENABLED=1 go test -race -short $(CONCURRENT)

386: ## the tests of the engine on 32 bits
	CGO_ENABLED=0 GOARCH=386 go test -short ./leap ./node

modules: ## lint and tests of the nested modules
	@set -e; for m in $(MODULES); do echo "$$m"; \
		(cd $$m && go mod tidy -diff && go vet ./... && go tool -modfile=$(CURDIR)/tools/go.mod staticcheck ./... && CGO_ENABLED=1 go test -race -short ./...); \
	done

dashboards: ## write the dashboards again from dashboards/gen
	cd dashboards/gen && go run . -out ..

rules: ## the unit tests of the rules for Prometheus, and its configuration, with PROMTOOL
	@set -e; dir=$$(mktemp -d); trap 'rm -rf '$$dir EXIT; promtool=$(PROMTOOL); \
	if [ -z "$$promtool" ]; then promtool=$$dir/promtool; (cd $$dir && go mod init promtool && \
		go get github.com/prometheus/prometheus/cmd/promtool@v0.315.0 && \
		go build -buildvcs=false -tags remove_all_sd,netgo -o promtool github.com/prometheus/prometheus/cmd/promtool); fi; \
	cd dashboards/rules && $$promtool check rules recording.yaml alerts.yaml && $$promtool test rules test.yaml && \
	$$promtool check config --syntax-only ../compose/prometheus.yaml

lint: ## gofumpt, go vet, staticcheck, go mod tidy
	@unformatted=$$($(TOOL) gofumpt -l .); if [ -n "$$unformatted" ]; then echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; fi
	go mod tidy -diff
	go vet ./...
	$(TOOL) staticcheck ./...

fmt: ## format the code
	$(TOOL) gofumpt -w .

bench: ## the engine beside its rivals, some ten minutes; the result goes to bench/RESULTS.md
	$(MAKE) -C bench results stat

quick: ## the engine's own benchmarks
	go test -run '^$$' -bench . -benchmem ./node ./collector/...

hammer: ## the conservation hammer for HAMMER (default 2m)
	go test -run TestNothingIsLostAcrossTurns -v -timeout 60m ./node -hammer $(HAMMER)

storm: ## a million made-up paths before services that know all of them, some or none; half a minute
	go test -run TestStorm -v -timeout 20m ./cmd/windowstat -storm 1000000

kill: ## the metric log of a thousand processes that are killed, some five minutes
	go test -run TestKilled -v -timeout 60m ./exporter/metriclog -kills 1000

full: ## the metric log on a small filesystem that is full (root on Linux)
	go test -run TestFullFilesystem -v ./exporter/metriclog -tmpfs

fuzz: ## every fuzz target for FUZZTIME (default 1m)
	@set -e; grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
		grep -ho '^func Fuzz[A-Za-z0-9]*' $$dir/*_test.go | sed 's/^func //' | while read -r target; do \
			echo "$$dir $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$dir; \
		done; \
	done
