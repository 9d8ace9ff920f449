package e2e

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	sentinel "github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/config"
	"github.com/alibaba/sentinel-golang/logging"

	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/sentinellog"
)

// Environment variables that turn the test's executable into an application with sentinel-golang, or into a follower of
// metric logs. Their value is the directory of the logs.
const (
	sentinelAppDir   = "WINDOWSTAT_E2E_SENTINEL_APP"
	sentinelDir      = "WINDOWSTAT_E2E_SENTINEL_LOGS"
	sentinelStateDir = "WINDOWSTAT_E2E_SENTINEL_STATE"
)

// runSentinelApp runs an application under load that uses sentinel-golang, which writes its metric log. The application
// ends on a signal.
func runSentinelApp(dir string) error {
	entity := config.NewDefaultConfig()
	entity.Sentinel.App.Name = "go-app"
	entity.Sentinel.Log.Dir = dir
	entity.Sentinel.Log.UsePid = true
	entity.Sentinel.Log.Logger = logging.NewConsoleLogger()
	logging.ResetGlobalLoggerLevel(logging.ErrorLevel)
	if err := sentinel.InitWithConfig(entity); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var callers sync.WaitGroup
	for i := range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				e, blocked := sentinel.Entry("GET /go/"+strconv.Itoa(rand.IntN(3*i+1)),
					sentinel.WithTrafficType(base.Inbound))
				time.Sleep(time.Duration(1+rand.IntN(30)) * time.Millisecond)
				if blocked != nil {
					continue
				}
				if rand.IntN(5) == 0 {
					sentinel.TraceError(e, errors.New("failed"))
				}
				e.Exit()
				if rand.IntN(50) == 0 {
					time.Sleep(time.Duration(rand.IntN(3000)) * time.Millisecond) // idle seconds
				}
			}
		})
	}
	callers.Wait()
	time.Sleep(3 * time.Second) // for the log
	return nil
}

// runSentinelFollower serves the logs of a directory. It breaks off each tenth response of the per-second page.
func runSentinelFollower(dir, state, addr string) error {
	x, err := exporter.New(exporter.Options{
		App: "follower", Sentinel: sentinellog.Options{Dir: dir, StateDir: state}, Drain: -1,
	})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	var pages atomic.Int64
	server := x.Server()
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == secondsPath && pages.Add(1)%10 == 0 {
			w = &breaking{ResponseWriter: w}
		}
		handler.ServeHTTP(w, r)
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.Background()) })
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	err = x.Run(ctx)
	if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// breaking is a connection that breaks in the middle of a response.
type breaking struct {
	http.ResponseWriter
	written int
}

func (b *breaking) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func (b *breaking) Write(p []byte) (int, error) {
	n, err := b.ResponseWriter.Write(p[:len(p)/2])
	if b.written += n; err == nil {
		_ = http.NewResponseController(b.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// sentinelMain runs the program that the environment selects, and reports whether it selects a program of this file.
func sentinelMain() (run func() error) {
	if dir := os.Getenv(sentinelAppDir); dir != "" {
		return func() error { return runSentinelApp(dir) }
	}
	if dir := os.Getenv(sentinelDir); dir != "" {
		return func() error { return runSentinelFollower(dir, os.Getenv(sentinelStateDir), os.Getenv(childAddress)) }
	}
	return nil
}
