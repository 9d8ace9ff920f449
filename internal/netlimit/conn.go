package netlimit

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/windowstat/windowstat/internal/fairshare"
)

// Conn returns a connection on which a write fails with [os.ErrDeadlineExceeded] when the peer takes no byte for stall, and at
// the latest after twice that; zero is never. On Linux what the peer's machine acknowledges is taken, and elsewhere what the
// system buffers.
func Conn(c net.Conn, stall time.Duration) net.Conn { return newConn(c, stall) }

// conn is a connection that keeps to its bounds.
type conn struct {
	net.Conn
	stall    time.Duration
	listener *listener // that has accepted it; nil if none has
	holder   *fairshare.Holder[netip.Prefix, *conn]
	moved    atomic.Int64 // when a byte moved last, in nanoseconds since the process's first connection
	future   atomic.Bool  // the deadline for reads was in the future when it was set
	over     atomic.Bool  // such a deadline has passed

	mu       sync.Mutex // guards what follows, and the deadline for writes of the wrapped connection
	deadline time.Time  // for writes, as it was set
}

// epoch is what connections count from, by the monotonic clock.
var epoch = sync.OnceValue(time.Now)

func newConn(c net.Conn, stall time.Duration) *conn {
	n := &conn{Conn: c, stall: stall}
	n.move()
	return n
}

func (c *conn) move() { c.moved.Store(int64(time.Since(epoch()))) }

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	if c.over.Load() {
		return 0, os.ErrDeadlineExceeded
	}
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.move()
	} else if c.listener != nil && c.future.Load() && errors.Is(err, os.ErrDeadlineExceeded) {
		c.over.Store(true)
	}
	return n, err
}

// SetReadDeadline implements net.Conn. One in the past interrupts a read. One that passes ends what is read from an accepted
// connection: a server would wait again for a client that sends nothing, because it thinks that the body was read.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.future.Store(time.Until(t) > 0)
	return c.Conn.SetReadDeadline(t)
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (written int, err error) {
	// Without a stall no deadline passes but the one that was set.
	for before := -1; ; {
		c.arm()
		n, err := c.Conn.Write(b[written:])
		if written += n; n > 0 {
			c.move()
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || c.late() {
			return written, err
		}
		// A buffer may hold megabytes, and takes no more until a third of it is empty.
		left, known := Unacknowledged(c.Conn)
		if n == 0 && (!known || before >= 0 && left >= before) {
			c.reset()
			return written, err
		}
		if before = left; !known {
			before = -1
		}
	}
}

// arm sets the deadline of a write that begins.
func (c *conn) arm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.set()
}

func (c *conn) set() error {
	t := c.deadline
	if stalled := time.Now().Add(c.stall); c.stall > 0 && (t.IsZero() || stalled.Before(t)) {
		t = stalled
	}
	return c.Conn.SetWriteDeadline(t)
}

// late reports whether the deadline that was set has passed.
func (c *conn) late() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.deadline.IsZero() && !time.Now().Before(c.deadline)
}

// SetWriteDeadline implements net.Conn. Whichever is earlier, the deadline or that of a stall, counts.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return c.set()
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Close implements net.Conn.
func (c *conn) Close() error {
	if c.listener != nil {
		c.listener.leave(c)
	}
	return c.Conn.Close()
}

// abort closes without sending what is buffered, which would keep its memory until the peer takes it.
func (c *conn) abort() error {
	c.reset()
	return c.Close()
}

// reset has Close throw away what is buffered.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0)
	}
}

// CloseWrite ends one direction, as that of a TCP connection does.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// SyscallConn implements syscall.Conn.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
