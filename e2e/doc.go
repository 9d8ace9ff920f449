// Package e2e tests windowstat against the servers that read it or are pushed to: Prometheus 3.16, 3.15 and 2.42,
// VictoriaMetrics 1.150 with its agent, and its cluster 1.100 with another, the real ones, running on loopback.
//
//	cd e2e && go test -v -timeout 20m ./...
//
// The first run installs the servers into windowstat-e2e below the user's cache directory, which takes some minutes and
// needs gcc, a network, and Debian's apt for Prometheus 2.42 and nginx; later runs find them there and take some two minutes.
// .ci/setup installs Debian's Apache and HAProxy. A server that cannot be installed or started fails the test.
//
// All tests run at the same time, each with servers of its own:
//
//   - TestSeconds: a service under load. Servers that are stopped, pages that fail or break off, and two clients with one
//     cursor name.
//   - TestLongOutage: ten minutes of a thousand resources that nobody read.
//   - TestTimeout: scrapes that time out when the page has been sent.
//   - TestPaused: servers that stand still now and then, whose scrapes may take as long as their interval.
//   - TestBehindNginx: a server that reads a page through nginx as it is documented.
//   - TestRestart: a service that is killed and started again.
//   - TestBackfill: holes that outages left, filled from the metric log.
//   - TestExpressions: what to ask a server, so that the answer is right when a target has vanished, too.
//   - TestQuantiles: the response times of each second, and what to ask for a quantile of one.
//   - TestTruncatedImport: requests to VictoriaMetrics that break off within a line.
//   - TestSIGTERM: the service of docs/programs.md is told to end in the middle of a load.
//   - TestContainer: the binary alone in a root of its own, as in an image and in a pod of deploy/kubernetes.
//   - TestShortJob: a job of three seconds pushes everything that it did.
//   - TestSlot: one job after the other pushes to the same series.
//   - TestReceiverDown: the servers that a service pushes to are away for a minute.
//   - TestPushWeather: pushes through proxies that fail before and after a server has stored a request.
//   - TestKilledPushes: a service that pushes through such proxies is killed, again and again.
//   - TestPushOfTwoWriters: two processes push to the same series.
//   - TestCluster: five instances that are restarted one after the other, in the cluster of VictoriaMetrics and in a
//     Prometheus. The environment variable WINDOWSTAT_E2E_CLUSTER names a directory with another version of the cluster.
//   - TestNewSeriesInCluster: the time until the cluster shows 200,000 new series; only with -tags fleet and the
//     variable.
//   - TestDeduplicationDestroysSeconds: verify and a VictoriaMetrics with the deduplication for pairs of servers.
//   - TestOTLPDeltaIncrease: increase() of OTLP deltas in Prometheus, with and without their start times.
//   - TestAgents: servers and agents with the configurations of the documentation; the agents, and some of the servers, forward
//     by remote write.
//   - TestThanosReceive, TestOpenTelemetryCollector, which take long to build: only with -tags fleet, see make consumers.
//   - TestCost, TestHundredsOfInstances, which measure: only with -tags fleet, see make fleet.
//   - TestRecordedPeaks: the recording rule of docs/scale.md.
//   - TestDocumentedExpressions, TestDocumentedConfigurations: every block of PromQL and YAML in the documentation is tried.
//   - TestReplay, TestReplayResources: a real access log is replayed, beside what zcat, awk, sort and uniq say of it.
//   - TestReplayFollow, TestReplayDiskFull: a replay is killed, and goes on; a disk is full.
//   - TestWebServers: the logs of nginx, Apache, Caddy and HAProxy in front of one upstream, of the same requests.
//   - TestReplayMemory: what a replay of 500 MB holds at most.
//   - TestFrameworks: what hey, a load generator, says of services with each framework, beside what they counted.
//   - TestClientGolang: a service that counts with client_golang alone.
//   - TestSamplerTruth: such a service in every trouble, by every way; among 50,000 series; under a clock that is set.
//   - TestProxyBesideNginx: what windowstat proxy and Debian's nginx make of the same requests and answers.
//   - TestProxyAttacked: clients that hold what they can of windowstat proxy, while another one is served.
//   - TestScreens: what a service knows of itself beside every view of it, the dashboards included.
//   - TestLive: the live page in Debian's chromium, which must be installed. Pictures of it are kept in the directory
//     pictures, or in $WINDOWSTAT_E2E_PICTURES.
//
// What a server has in the end is compared second by second with the metric log, or with what a test has done under a
// clock of its own.
//
// The command scale measures what it costs to hand on every second, see docs/scale.md.
//
// The package is a module of its own, so that who imports the SDK sees nothing of it.
package e2e
