package otlp

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/windowstat/windowstat/internal/limiter"
)

// arriving is a body that arrives in parts. It counts the bytes that all bodies hold.
type arriving struct {
	left, arrived int
	held, most    *atomic.Int64
}

func (a *arriving) Read(b []byte) (int, error) {
	if a.arrived < minGrowth {
		runtime.Gosched() // the first bytes arrive later than the headers
	}
	if a.left == 0 {
		return 0, io.EOF
	}
	n := min(len(b), a.left)
	a.left, a.arrived = a.left-n, a.arrived+n
	a.most.Store(max(a.most.Load(), a.held.Add(int64(n))))
	return n, nil
}

// A host sends complete bodies without pause, and no decoder is free. The bodies that are evicted return their memory
// before others take it: without that, almost twice the maximum is in use.
func TestMemoryOfEvictedBodies(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // busy processors, as during an attack
	const size, clients, requests = 1 << 20, 250, 2000
	all, slots := newBodies(), limiter.NewSlots(1)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	release, err := slots.Acquire(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	var held, most, sent atomic.Int64
	var flood sync.WaitGroup
	for range clients {
		flood.Go(func() {
			for ctx.Err() == nil {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, tracesPath, http.NoBody)
				if err != nil {
					panic(err)
				}
				r.RemoteAddr = "192.0.2.1:1"
				from := &arriving{left: size, held: &held, most: &most}
				b, err := all.open(r)
				if err == nil {
					err = b.read(from, size, false)
				}
				if sent.Add(1) == requests {
					end()
				}
				if err == nil {
					_, _ = slots.Acquire(b.ctx, b.host) // until the body is evicted
				}
				b.free()
				held.Add(int64(-from.arrived))
			}
		})
	}
	flood.Wait()
	t.Logf("at most %d MiB of %d MiB", most.Load()>>20, maxMemory>>20)
	if most.Load() > maxMemory*5/4 { // with a margin: other goroutines may run first
		t.Errorf("bodies took %d MiB, want at most %d MiB", most.Load()>>20, maxMemory>>20)
	}
	if n := all.memory.Held() + all.requests.Held() + int(held.Load()); n != 0 {
		t.Errorf("%d are held after the flood", n)
	}
}
