package e2e

import (
	"errors"
	"syscall"
	"testing"
	"time"
)

const (
	receiverLoad    = 85 // seconds
	receiverStop    = 12 * time.Second
	receiverDownFor = time.Minute
)

// TestReceiverDown stops the servers of a service that pushes under load for a minute. The service sends the waiting
// seconds when the servers are back. In the end the servers have every second once, with the numbers of the metric log.
func TestReceiverDown(t *testing.T) {
	t.Parallel()
	s, endLog := startService(t)
	killed, ended := startServer(t, "prometheus-3", prometheus3), startServer(t, "victoria", victoria)
	pushes := pushTo(t, s.stats, killed, ended)
	var stops []func() error
	for _, p := range pushes {
		stops = append(stops, p.Start())
	}
	loaded := make(chan error, 1)
	go func() { loaded <- s.load(t.Context(), receiverLoad) }()

	time.Sleep(receiverStop)
	killed.end(syscall.SIGKILL)
	// SIGTERM lets the server write its data to the disk; otherwise it would lose the data in memory.
	ended.end(syscall.SIGTERM)
	time.Sleep(receiverDownFor)
	for _, p := range pushes {
		if lag := p.numbers()["push_lag_seconds"]; lag < receiverDownFor.Seconds() {
			t.Errorf("%s to %s is only %v s behind after a minute without a server", p.job.name, p.server.name, lag)
		}
	}
	killed.start(t)
	ended.start(t)
	back := time.Now()
	for _, p := range pushes {
		awaitPushed(t, p, back)
	}
	if err := <-loaded; err != nil {
		t.Fatal(err)
	}
	err := endLog()
	end := s.open()
	numbers := make([]map[string]float64, len(pushes)) // a pusher has no numbers after its end
	for i, p := range pushes {
		numbers[i] = p.numbers()
	}
	for _, stop := range stops {
		err = errors.Join(err, stop()) // stop sends all seconds before the end
	}
	if err != nil {
		t.Fatal(err)
	}
	truths, err := s.truths()
	if err != nil {
		t.Fatal(err)
	}

	for i, p := range pushes {
		t.Run(p.server.name+"/"+p.job.name, func(t *testing.T) {
			p.show(t)
			samples := 0
			for _, f := range fields {
				samples += checkField(t, p.server, p.job, f, truths, end)
			}
			checkPeak(t, p.server, p.job, truths["burst"])
			n := numbers[i]
			t.Logf("%d samples; %v requests were sent again, %v samples refused, %v seconds lost", samples,
				n["push_retries_total"], n["push_refused_samples_total"], n["push_lost_seconds_total"])
			if n["push_retries_total"] == 0 || n["push_refused_samples_total"] != 0 ||
				n["push_lost_seconds_total"] != 0 {
				t.Error("something should have been sent again, and nothing refused or lost")
			}
		})
	}
}

// awaitPushed waits until a restarted server has everything.
func awaitPushed(t *testing.T, p pushed, back time.Time) {
	t.Helper()
	for p.numbers()["push_lag_seconds"] > 2 {
		// After a failed attempt the pusher pauses up to 45 s.
		if time.Since(back) > 2*catchUp {
			t.Fatalf("%s to %s does not catch up", p.job.name, p.server.name)
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("%s to %s had everything within %v", p.job.name, p.server.name, time.Since(back).Round(100*time.Millisecond))
}
