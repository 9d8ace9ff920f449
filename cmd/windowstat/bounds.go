package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/windowstat/windowstat/internal/logonce"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/internal/netlimit"
)

// bounds are what a server allows those who connect. Its Stall is for the bodies of requests, too.
type bounds struct {
	netlimit.Bounds
	header, idle time.Duration
}

const (
	headerTimeout = 10 * time.Second
	stallTimeout  = time.Minute
	idleTimeout   = 2 * time.Minute

	// A header is as large as nginx and what is behind it take it, several times; the rest is refused with 431.
	maxHeaderBytes = 128 << 10

	maxConnections     = 8192 // if as many files may be open
	maxPageConnections = 256  // to the pages
	reservedFiles      = 64   // for logs, pushes and what the runtime has open
)

// pageBounds are those of the pages, whose connections have files that a proxy does not take.
func pageBounds() bounds {
	return bounds{
		Bounds: netlimit.Bounds{Conns: pageConnections(openFiles()), Stall: stallTimeout},
		header: headerTimeout, idle: idleTimeout,
	}
}

// unbounded are those of a server whose only client is the process itself.
func unbounded() bounds {
	b := pageBounds()
	b.Conns = 0
	return b
}

func pageConnections(files int) int { return max(1, min(maxPageConnections, files/8)) }

// proxyConnections is how many clients may be connected, each with a connection to the upstream.
func proxyConnections(files int) int {
	return max(0, (files-reservedFiles-pageConnections(files))/2)
}

func boundFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "proxy.trusted-proxies", Usage: "`NETWORK` of proxies in front, such as 10.0.0.7 or 10.0.0.0/8, whose X-Forwarded headers are kept; repeatable"},
		&cli.DurationFlag{Name: "proxy.header-timeout", Value: headerTimeout, Usage: "how long a client may take to send the headers of a request"},
		&cli.DurationFlag{Name: "proxy.stall-timeout", Value: stallTimeout, Usage: "how long a body may stand still on its way, while its sender or receiver does nothing"},
		&cli.DurationFlag{Name: "proxy.idle-timeout", Value: idleTimeout, Usage: "how long a client's connection may wait for its next request"},
		&cli.IntFlag{Name: "proxy.max-connections", Usage: fmt.Sprintf("how many clients are connected; 0 is as many as open files allow, at most %d", maxConnections)},
		&cli.IntFlag{Name: "proxy.max-connections-per-host", Usage: "how many of them are of one host (of IPv6: one /64) that is no trusted proxy; 0 is half of them"},
	}
}

// parseBounds reads the flags. The files are how many may be open.
func parseBounds(c *cli.Context, files int) (b bounds, err error) {
	var errs flagErrors
	positive := func(flag string) time.Duration {
		d := c.Duration(flag)
		if d <= 0 {
			errs.add(flag, fmt.Errorf("%v is not positive", d))
		}
		return d
	}
	b.header, b.Stall, b.idle = positive("proxy.header-timeout"), positive("proxy.stall-timeout"), positive("proxy.idle-timeout")
	b.Proxies, err = parseNetworks(c.StringSlice("proxy.trusted-proxies"))
	errs.add("proxy.trusted-proxies", err)

	room := proxyConnections(files)
	b.Conns, b.ConnsPerHost = c.Int("proxy.max-connections"), c.Int("proxy.max-connections-per-host")
	switch {
	case b.Conns < 0:
		errs.add("proxy.max-connections", fmt.Errorf("%d is negative", b.Conns))
	case b.Conns > room || room == 0:
		errs.add("proxy.max-connections", fmt.Errorf("%d is more than %d, for which %d open files suffice (ulimit -n)", b.Conns, room, files))
	case b.Conns == 0:
		b.Conns = min(room, maxConnections)
	}
	switch {
	case b.ConnsPerHost < 0:
		errs.add("proxy.max-connections-per-host", fmt.Errorf("%d is negative", b.ConnsPerHost))
	case b.ConnsPerHost == 0:
		b.ConnsPerHost = max(1, b.Conns/2)
	}
	return b, errors.Join(errs...)
}

// listener is one that keeps to the bounds, and says when somebody had to make room.
func (b bounds) listener(l net.Listener, logger *slog.Logger) net.Listener {
	said := logonce.Logger{To: logger}
	b.OnEvict = func(host netip.Prefix) {
		said.Log(slog.LevelWarn, "too many connections: the longest idle one of a host was closed", "host", host, "address", l.Addr())
	}
	return netlimit.Listen(l, b.Bounds)
}
