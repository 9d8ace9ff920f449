package netlimit

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Intake selects the bytes of clients that a listener reads at a limited rate. Without a limit, a client can keep the
// processors busy with requests or HTTP/2 frames that it sends without reading a response. A PING has 17 bytes, and a
// request with 2,500 headers has 15 KB and takes as long as twenty usual requests.
//
// All connections together are read at 512 KiB per second. If they send more, each connection also has an equal part of
// a second such rate, and the first 1 KiB of each connection are read without waiting. A connection that sends slowly,
// such as that of a scraper, therefore never waits for one that floods. Nothing is refused or lost: bytes above the
// rate stay in the buffers of the kernel, and the client waits.
type Intake int

const (
	// Unlimited reads everything as fast as possible.
	Unlimited Intake = iota
	// LimitBytes limits all bytes, with or without TLS. It suits a server whose requests have no bodies.
	LimitBytes
	// LimitFrames limits the frames of HTTP/2 without TLS, except for the payload of DATA frames. HTTP/1.1 and TLS are
	// not limited. It suits a server that receives large bodies.
	LimitFrames
)

const (
	sharedRate  = 512 << 10 // bytes per second
	sharedBurst = 64 << 10
	ownBurst    = 1 << 10 // the headers of a usual request
	maxRead     = 1 << 10 // of one read under LimitBytes, so a wait is short
	minWait     = time.Millisecond

	// readBuffer is the size of the kernel's buffer for a connection under LimitBytes. By default it grows to megabytes
	// when a client sends faster than it is read.
	readBuffer = 64 << 10
)

// bucket is a token bucket. Its only state is the time at which it is full.
type bucket struct{ full time.Duration } // since epoch

// after returns the bucket after n bytes were taken. The taker must wait until the time at which the result is full,
// minus the time that the burst takes.
func (b bucket) after(now time.Duration, n, rate int) bucket {
	return bucket{max(b.full, now) + time.Duration(n)*time.Second/time.Duration(rate)}
}

// intake limits the bytes of a listener.
type intake struct {
	kind    Intake
	ownRate int // of each connection

	mu     sync.Mutex // guards shared, and the bucket of each connection
	shared bucket
}

func newIntake(b Bounds) *intake {
	const defaultConns = 1024
	conns := b.Conns
	if conns <= 0 {
		conns = defaultConns
	}
	return &intake{kind: b.Intake, ownRate: max(1, sharedRate/conns), shared: bucket{time.Since(epoch())}}
}

// reader is the state of a connection.
type reader struct {
	own      bucket
	frames   frames
	until    atomic.Int64  // time since epoch at which the next read may begin
	deadline atomic.Int64  // time since epoch of the read deadline, or math.MaxInt64
	wake     chan struct{} // receives when the deadline changes or the connection is closed
}

func newReader() *reader {
	r := &reader{own: bucket{time.Since(epoch())}, wake: make(chan struct{}, 1)}
	r.until.Store(math.MinInt64)
	r.deadline.Store(math.MaxInt64)
	return r
}

// charge takes bytes that were read from the bucket that delays the connection less.
func (i *intake) charge(r *reader, b []byte) {
	n := len(b)
	if i.kind == LimitFrames {
		n = r.frames.count(b)
	}
	if n == 0 {
		return
	}
	now := time.Since(epoch())
	i.mu.Lock()
	defer i.mu.Unlock()
	own, shared := r.own.after(now, n, i.ownRate), i.shared.after(now, n, sharedRate)
	ownStart := own.full - ownBurst*time.Second/time.Duration(i.ownRate)
	sharedStart := shared.full - sharedBurst*time.Second/sharedRate
	if ownStart <= max(now, sharedStart) {
		r.own = own
		r.until.Store(int64(ownStart))
	} else {
		i.shared = shared
		r.until.Store(int64(sharedStart))
	}
}

// wait waits until the connection may be read again, or until its read deadline.
func (r *reader) wait() {
	for first := true; ; first = false {
		end, now := min(r.until.Load(), r.deadline.Load()), int64(time.Since(epoch()))
		if end <= now {
			return
		}
		left := time.Duration(end - now)
		if first && left < minWait { // short waits add up to a longer one
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-r.wake:
			timer.Stop()
		}
	}
}

// end ends a wait at a time since epoch.
func (r *reader) end(at time.Duration) {
	r.deadline.Store(int64(at))
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
