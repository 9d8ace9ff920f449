package otlp

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"os"
	"runtime"
	"time"

	"github.com/windowstat/windowstat/internal/clientip"
	"github.com/windowstat/windowstat/internal/limiter"
	"github.com/windowstat/windowstat/internal/netlimit"
)

const (
	// maxBody is the maximum size of a message, both compressed and decompressed.
	maxBody = 16 << 20
	// maxMemory is the maximum total of the bodies that have arrived and are not decoded yet. It suffices for hundreds
	// of typical requests.
	maxMemory = 4 * maxBody
	// maxRequests is the maximum number of requests in progress. A request without a body takes some 20 KiB for its
	// goroutine, its headers and its HTTP/2 stream. This memory is not part of maxMemory.
	maxRequests = 1024

	// firstBytes of a body are part of the cost of a request. The next ones take memory from the budget.
	firstBytes = 512
	// minGrowth is the smallest allocation from the budget.
	minGrowth = 4 << 10

	// A body may take bodyTime, and a second more for each minRate bytes. Senders give up after ten seconds by default.
	bodyTime = time.Minute
	minRate  = 16 << 10
)

// bodies holds the bodies of requests that are in progress, within bounds for all hosts together.
//
// A body takes memory when bytes arrive, and not when its headers announce them: at most twice the arrived bytes plus
// minGrowth. A compressed body is decompressed only when it has arrived completely (see decoder). An incomplete body
// therefore never takes memory for its decompressed bytes.
//
// If a bound is reached, the host that holds the most loses its oldest body: its reads are interrupted, and its sender
// gets 503. A host therefore cannot keep out other hosts, whether it sends half bodies, headers only or large bodies. A
// host without a rival may use everything. A bound for a single host would hurt Collectors that send for many services.
type bodies struct {
	// requests counts the requests in progress.
	requests *limiter.Shares
	// memory counts the bytes of their bodies.
	memory *limiter.Shares
}

func newBodies() bodies {
	return bodies{
		requests: limiter.NewShares(maxRequests, limiter.EvictOldest),
		memory:   limiter.NewShares(maxMemory, limiter.EvictOldest),
	}
}

// body is the body of a request. The caller must call free when it no longer needs the bytes.
type body struct {
	// ctx has the cause errBusy after an eviction.
	ctx   context.Context
	host  string
	bytes []byte

	all   *bodies
	evict func() error
	// gives return the shares of the body.
	gives []func()
}

// open starts a request: it is a request in progress until free is called.
func (a *bodies) open(r *http.Request) (*body, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	b := &body{ctx: ctx, host: clientip.OfAddress(r.RemoteAddr), all: a}
	// The eviction may happen at any time until free: while the body is read, or while it waits for a decoder. In a
	// decoder it has no effect, because the decoder will finish soon.
	b.evict = func() error {
		cancel(errBusy) // ends a wait for a decoder
		netlimit.Abort(r.Body)
		return nil
	}
	b.gives = append(b.gives, func() { cancel(nil) })
	give, ok := a.requests.Take(b.host, 1, b.evict)
	if !ok {
		return b, errBusy
	}
	b.gives = append(b.gives, give)
	return b, nil
}

// free returns everything that the body holds.
func (b *body) free() {
	for _, give := range b.gives {
		give()
	}
	b.bytes = nil
}

// frameHeader is the length of a gRPC frame's header: a byte that is 1 if the message is compressed, and the length of
// the message.
const frameHeader = 5

// read reads from until its end, or if framed is true, until the end of the first gRPC frame, which bytes then contains
// with its header. The length is the announced one, or negative; it only prevents that the buffer grows beyond it.
func (b *body) read(from io.Reader, length int64, framed bool) error {
	// A single read may wait as long as netlimit.Bodies permits, so a body ends at most that much after its time.
	begin, limit := time.Now(), int64(maxBody)
	if framed {
		limit += frameHeader
	}
	if length > limit {
		return errTooLarge
	}
	b.bytes = make([]byte, 0, firstBytes)
	for {
		if err := b.grow(length, limit); err != nil {
			return err
		}
		n, err := from.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		arrived := int64(len(b.bytes))
		// A client may keep its stream open after the frame, so the end of the body is not awaited.
		if framed && arrived >= frameHeader {
			if length = frameHeader + int64(binary.BigEndian.Uint32(b.bytes[1:])); arrived >= length {
				b.bytes = b.bytes[:length]
				return nil
			}
		}
		switch {
		case arrived > limit || framed && length > limit:
			return errTooLarge
		case err == io.EOF && framed:
			return errIncomplete
		case err == io.EOF:
			return nil
		case err != nil:
			return b.failure(err)
		case time.Since(begin) > bodyTime+time.Duration(arrived)*time.Second/minRate:
			return errSlow
		}
	}
}

// failure returns the failure for an error of a read.
func (b *body) failure(err error) error {
	switch {
	case context.Cause(b.ctx) == errBusy:
		return errBusy
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSlow
	}
	return errIncomplete
}

// grow doubles a full buffer and takes the memory from the budget. The maximum is one byte more than length and limit:
// without that byte, a read would not see the end.
func (b *body) grow(length, limit int64) error {
	had := cap(b.bytes)
	if len(b.bytes) < had {
		return nil
	}
	size := min(max(2*had, minGrowth), int(limit)+1)
	if length >= int64(had) {
		size = int(min(int64(size), length+1))
	}
	give, ok := b.all.memory.Take(b.host, size-had, b.evict)
	// Evicted bodies hold their bytes until their goroutines run, and these wait for a processor and for the lock of
	// memory. Let them run before this body takes memory: otherwise, a flood takes twice maxMemory.
	runtime.Gosched()
	if !ok || b.ctx.Err() != nil { // Take may have evicted this body
		if ok {
			give()
		}
		return errBusy
	}
	b.gives = append(b.gives, give)
	b.bytes = append(make([]byte, 0, size), b.bytes...)
	return nil
}
