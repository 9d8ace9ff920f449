package netlimit

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/windowstat/windowstat/internal/fairshare"
)

// Conn returns a connection whose writes fail with [os.ErrDeadlineExceeded] if the peer takes no byte for stall, after
// at most twice that time. A stall of zero means no limit. On Linux a byte is taken when the peer's machine
// acknowledges it, on other systems when the local system buffers it.
func Conn(c net.Conn, stall time.Duration) net.Conn { return newConn(c, stall) }

// conn is a connection with the bounds of [Conn] and [Listen].
type conn struct {
	net.Conn
	stall    time.Duration
	listener *listener // that accepted it, or nil
	holder   *fairshare.Holder[netip.Prefix, *conn]
	moved    atomic.Int64 // time of the last byte in either direction, in nanoseconds since epoch
	reader   *reader      // state of the listener's intake, or nil
	future   atomic.Bool  // the deadline for reads was in the future when it was set
	over     atomic.Bool  // such a deadline has passed

	mu       sync.Mutex // guards deadline and the write deadline of the wrapped connection
	deadline time.Time  // the write deadline that the caller set
}

// epoch is the origin of the times that connections store, on the monotonic clock.
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
	if c.reader != nil {
		c.reader.wait()
		if c.listener.intake.kind == LimitBytes {
			b = b[:min(len(b), maxRead)]
		}
	}
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.move()
		if c.reader != nil {
			c.listener.intake.charge(c.reader, b[:n])
		}
	} else if c.listener != nil && c.future.Load() && errors.Is(err, os.ErrDeadlineExceeded) {
		c.over.Store(true)
	}
	return n, err
}

// SetReadDeadline implements net.Conn. A deadline in the past interrupts a read. A deadline that passes ends all reads
// of an accepted connection; otherwise the server would wait again for a client that sends nothing, because it assumes
// that the body was read.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.future.Store(time.Until(t) > 0)
	err := c.Conn.SetReadDeadline(t)
	switch {
	case c.reader == nil:
	case t.IsZero():
		c.reader.end(math.MaxInt64)
	default:
		c.reader.end(t.Sub(epoch()))
	}
	return err
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (written int, err error) {
	// Without a stall, only the deadline that the caller set can pass.
	for before := -1; ; {
		c.arm()
		n, err := c.Conn.Write(b[written:])
		if written += n; n > 0 {
			c.move()
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || c.late() {
			return written, err
		}
		// A send buffer may hold megabytes, and it accepts no bytes until a third of it is empty.
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

// arm sets the deadline of the next write.
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

// late reports whether the deadline that the caller set has passed.
func (c *conn) late() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.deadline.IsZero() && !time.Now().Before(c.deadline)
}

// SetWriteDeadline implements net.Conn. The earlier of t and the deadline of the stall applies.
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
	err := c.Conn.Close()
	if c.reader != nil {
		c.reader.end(math.MinInt64)
	}
	return err
}

// abort closes the connection and discards buffered bytes, which would otherwise occupy memory until the peer takes
// them.
func (c *conn) abort() error {
	c.reset()
	return c.Close()
}

// reset makes Close discard buffered bytes and send a reset.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0)
	}
}

// CloseWrite closes the write side, as the method of a TCP connection does.
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
