package netlimit

import (
	"net"
	"sync"
)

// acceptors is the number of goroutines that accept the connections of a listener. The kernel takes longer to reset a
// refused connection than to hand over the next one, so a second goroutine alone would keep up. Four also get a larger
// part of the processors when other programs, or the handlers of the server, keep them busy.
const acceptors = 4

// Serve calls serve with l on several goroutines, and returns the first error when all calls have returned. The method
// Serve of an http.Server is such a function: it accepts connections until it fails or the server shuts down.
//
// During a flood, new connections wait in the queue of the kernel for the server to accept them. When the queue is
// full, the kernel ignores the first packet of a new connection, and an honest client sends it again after a second. A
// single goroutine falls behind if it shares its processor: 10,000 clients on the same two processors then keep the
// queue full.
func Serve(l net.Listener, serve func(net.Listener) error) error {
	l = &closedOnce{l, sync.OnceValue(l.Close)}
	ended := make(chan error, acceptors)
	for range acceptors {
		go func() { ended <- serve(l) }()
	}
	err := <-ended
	for range acceptors - 1 {
		<-ended // the first call has closed l, or its server has shut down
	}
	return err
}

// closedOnce is a listener whose Close returns the same error each time. A shutdown of an http.Server closes a listener
// once for each goroutine that serves it, and would report the error of the second time.
type closedOnce struct {
	net.Listener
	close func() error
}

// Close implements net.Listener.
func (l *closedOnce) Close() error { return l.close() }
