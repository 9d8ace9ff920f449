// Package e2e tests windowstat against the real servers that scrape it or receive its pushes, running on loopback:
// Prometheus 3.16, 3.15 and 2.42, VictoriaMetrics 1.150 with its agent, and its cluster 1.100 with its own agent.
//
//	cd e2e && go test -v -timeout 20m ./...
//
// The first run installs the servers into windowstat-e2e below the user's cache directory. This takes some minutes and
// needs gcc, a network, and Debian's apt for Prometheus 2.42 and nginx. Later runs reuse the installed servers and take
// some two minutes. .ci/setup installs Debian's Apache and HAProxy. If a server cannot be installed or started, the
// test fails.
//
// All tests run at the same time, each with its own servers:
//
//   - TestSeconds: a service under load, servers that are stopped, pages that fail or break off, and two clients with
//     the same cursor name.
//   - TestLongOutage: ten minutes of a thousand resources that no server read.
//   - TestTimeout: scrapes that time out when the page has been sent.
//   - TestPaused: servers that are suspended periodically, whose scrapes may take as long as their interval.
//   - TestBehindNginx: a server that reads a page through nginx with the documented configuration.
//   - TestRestart: a service that is killed and restarted.
//   - TestBackfill: gaps that outages left, filled from the metric log.
//   - TestExpressions: queries whose result is right even if a target has vanished.
//   - TestQuantiles: the response times of each second, and queries for a quantile of a second.
//   - TestTruncatedImport: requests to VictoriaMetrics that break off within a line.
//   - TestSIGTERM: the service of docs/programs.md, terminated in the middle of a load.
//   - TestContainer: the binary alone in its own root, as in an image and in a pod of deploy/kubernetes.
//   - TestShortJob: a job of three seconds that pushes all its counts.
//   - TestSlot: jobs that push to the same series one after the other.
//   - TestReceiverDown: a service whose receivers are down for a minute.
//   - TestPushWeather: pushes through proxies that fail before and after a server has stored a request.
//   - TestKilledPushes: a service that pushes through such proxies and is killed repeatedly.
//   - TestPushOfTwoWriters: two processes that push to the same series.
//   - TestCluster: five instances that are restarted one after the other, in the cluster of VictoriaMetrics and in a
//     Prometheus. The environment variable WINDOWSTAT_E2E_CLUSTER names a directory with another version of the
//     cluster.
//   - TestNewSeriesInCluster: the time until the cluster shows 200,000 new series; only with -tags fleet and the
//     variable.
//   - TestDeduplicationDestroysSeconds: verify and a VictoriaMetrics with the deduplication for pairs of servers.
//   - TestOTLPDeltaIncrease: increase() of OTLP deltas in Prometheus, with and without their start times.
//   - TestAgents: servers and agents with the configurations of the documentation; the agents, and some of the servers,
//     forward by remote write.
//   - TestThanosReceive, TestOpenTelemetryCollector: programs that take long to build; only with -tags fleet, see make
//     consumers.
//   - TestCost, TestHundredsOfInstances: measurements; only with -tags fleet, see make fleet.
//   - TestOpenTelemetryNames: the metrics with OpenTelemetry's names, in the queries of dashboards and of an objective.
//   - TestRecordedPeaks: the recording rule of docs/scale.md.
//   - TestDocumentedExpressions, TestDocumentedConfigurations: every block of PromQL and YAML in the documentation.
//   - TestReplay, TestReplayResources: the replay of a real access log, compared with the output of zcat, awk, sort and
//     uniq.
//   - TestReplayFollow, TestReplayDiskFull: a replay that is killed and continues; a full disk.
//   - TestWebServers: the logs of nginx, Apache, Caddy and HAProxy in front of one upstream, for the same requests.
//   - TestReplayMemory: the peak memory of a replay of 500 MB.
//   - TestFrameworks: the counts of services with each framework, compared with the report of hey, a load generator.
//   - TestClientGolang: a service that counts only with client_golang.
//   - TestSamplerTruth: such a service under every kind of failure, by every way; among 50,000 series; with a clock
//     that is set.
//   - TestProxyBesideNginx: the counts of windowstat proxy and of Debian's nginx for the same requests and responses.
//   - TestProxyAttacked: clients that hold as much of windowstat proxy as possible, while another client is served.
//   - TestScreens: the values of a service, compared with every view of them, the dashboards included.
//   - TestLive: the live page in Debian's chromium, which must be installed. Pictures of the page are kept in the
//     directory pictures, or in $WINDOWSTAT_E2E_PICTURES.
//
// The tests compare the final contents of a server, second by second, with the metric log, or with the calls that a
// test made under its own clock.
//
// The command scale measures the cost of exporting every second, see docs/scale.md.
//
// The package is a separate module, so importers of the SDK do not depend on its requirements.
package e2e
