package adapters_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	coder "github.com/coder/websocket"
	gorilla "github.com/gorilla/websocket"
)

// followUp is a second request on a connection. Its response shows whether the connection was still usable after the
// first request.
const followUp = "GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

// The functions get, post and chunked return the text of a request, and after it the text of followUp.
func get(headers ...string) string {
	return "GET /a HTTP/1.1\r\nHost: a\r\n" + lines(headers) + "\r\n" + followUp
}

func post(body string, headers ...string) string {
	return fmt.Sprintf(
		"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n%s\r\n%s%s",
		len(body),
		lines(headers),
		body,
		followUp,
	)
}

func chunked(body, trailers string, headers ...string) string {
	return fmt.Sprintf("POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n%s\r\n%x\r\n%s\r\n0\r\n%s\r\n%s",
		lines(headers), len(body), body, trailers, followUp)
}

func lines(headers []string) string {
	if len(headers) == 0 {
		return ""
	}
	return strings.Join(headers, "\r\n") + "\r\n"
}

// upload returns the body of a request with a file and a form value. It also returns the header field with the content
// type of the body.
func upload(size int) (body, header string) {
	return "--x\r\nContent-Disposition: form-data; name=file; filename=a.bin\r\n\r\n" + strings.Repeat("u", size) +
			"\r\n--x\r\nContent-Disposition: form-data; name=word\r\n\r\nvalue\r\n--x--\r\n",
		"Content-Type: multipart/form-data; boundary=x"
}

func uploads(size int) string { body, header := upload(size); return post(body, header) }

// onlyFirst reports whether r is the first request on its connection. If r is the request followUp, onlyFirst responds
// to r and returns false.
func onlyFirst(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path == "/next" {
		_, _ = io.WriteString(w, "next")
		return false
	}
	return true
}

type handlerFunc = func(n *notes, w http.ResponseWriter, r *http.Request)

// below returns the handler of a behavior. For each request, it calls newHandler, and the returned http.Handler serves
// the request.
func below(newHandler func(n *notes) http.Handler) handlerFunc {
	return func(n *notes, w http.ResponseWriter, r *http.Request) { newHandler(n).ServeHTTP(w, r) }
}

// closeNotifier is the same interface as http.CloseNotifier. Linters report uses of http.CloseNotifier, because it is
// deprecated.
type closeNotifier interface{ CloseNotify() <-chan bool }

// abilities notes which optional interfaces the ResponseWriter and the body of the request have. It checks the
// interfaces that net/http, httputil, gin, echo, chi, gorilla/websocket and coder/websocket use.
func abilities(n *notes, w http.ResponseWriter, r *http.Request) {
	has := func(name string, of reflect.Type) { n.add("%s %t", name, reflect.TypeOf(w).Implements(of)) }
	has("Flusher", reflect.TypeFor[http.Flusher]())
	has("Hijacker", reflect.TypeFor[http.Hijacker]())
	has("CloseNotifier", reflect.TypeFor[closeNotifier]())
	has("Pusher", reflect.TypeFor[http.Pusher]())
	has("ReaderFrom", reflect.TypeFor[io.ReaderFrom]())
	has("StringWriter", reflect.TypeFor[io.StringWriter]())
	c := http.NewResponseController(w)
	n.add(
		"deadlines %v %v, full duplex %v",
		c.SetReadDeadline(time.Time{}),
		c.SetWriteDeadline(time.Time{}),
		c.EnableFullDuplex(),
	)
	n.add(
		"body %T, no body %t, get body %t, proto %s, tls %t",
		r.Body,
		r.Body == http.NoBody,
		r.GetBody != nil,
		r.Proto,
		r.TLS != nil,
	)
	n.add(
		"server %T, address %T",
		r.Context().Value(http.ServerContextKey),
		r.Context().Value(http.LocalAddrContextKey),
	)
}

func readAll(n *notes, r io.Reader) {
	b, err := io.ReadAll(r)
	n.add("read %d bytes, %v", len(b), err)
}

var behaviors = []behavior{
	{name: "abilities", request: get(), handle: abilities},
	{name: "abilities with a body", request: post("hello"), handle: abilities},
	{name: "abilities on HTTP/2", request: "hello", http2: true, handle: abilities},
	{
		name:    "abilities of the writer's own methods",
		request: get(),
		handle: func(n *notes, w http.ResponseWriter, _ *http.Request) {
			if x, ok := w.(interface{ SetWriteDeadline(time.Time) error }); ok {
				n.add("%v", x.SetWriteDeadline(time.Now().Add(time.Minute)))
			}
		},
	},

	{name: "nothing", request: get(), handle: func(*notes, http.ResponseWriter, *http.Request) {}},
	{
		name:    "a status alone",
		request: get(),
		handle:  func(_ *notes, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
	},
	{name: "two statuses", request: get(), handle: func(_ *notes, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		w.WriteHeader(http.StatusTeapot)
	}},
	{name: "no content", request: get(), handle: func(n *notes, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
		_, err := io.WriteString(w, "x")
		n.add("%v", err)
	}},
	{name: "more than the length", request: get(), handle: func(n *notes, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "2")
		_, err := io.WriteString(w, "xyz")
		n.add("%v", err)
	}},
	{
		name:    "HEAD",
		request: "HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n" + followUp,
		handle:  func(_ *notes, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "body") },
	},
	{
		name:    "HTTP/1.0",
		request: "GET /a HTTP/1.0\r\n\r\n",
		handle:  func(_ *notes, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "body") },
	},
	{name: "a long response", request: get(), handle: func(_ *notes, w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
	}},

	{
		name:    "an upload",
		files:   true,
		request: uploads(1000),
		handle: func(n *notes, _ http.ResponseWriter, r *http.Request) {
			n.add("%v", r.ParseMultipartForm(1))
		},
	},
	{
		name:    "an upload in memory",
		files:   true,
		request: uploads(1000),
		handle: func(n *notes, _ http.ResponseWriter, r *http.Request) {
			n.add("%v %s", r.ParseMultipartForm(1<<20), r.FormValue("word"))
		},
	},
	{
		name:    "an upload that is opened",
		files:   true,
		request: uploads(100_000),
		handle: func(n *notes, _ http.ResponseWriter, r *http.Request) {
			_ = r.ParseMultipartForm(1)
			if f, _, err := r.FormFile("file"); err == nil {
				readAll(n, f)
				f.Close()
			}
		},
	},
	{
		name:    "an upload, and a panic",
		files:   true,
		request: uploads(1000),
		handle: func(n *notes, _ http.ResponseWriter, r *http.Request) {
			n.add("%v", r.ParseMultipartForm(1))
			panic(http.ErrAbortHandler)
		},
	},
	{
		name:    "an upload in parts",
		files:   true,
		request: uploads(1000),
		handle: func(n *notes, w http.ResponseWriter, r *http.Request) {
			if !onlyFirst(w, r) {
				return
			}
			parts, err := r.MultipartReader()
			n.add("%v", err)
			for part, err := parts.NextPart(); err == nil; part, err = parts.NextPart() {
				readAll(n, part)
			}
		},
	},
	{
		name:    "an upload on HTTP/2",
		files:   true,
		request: "hello",
		http2:   true,
		handle: func(n *notes, _ http.ResponseWriter, r *http.Request) {
			body, header := upload(1000)
			_, r.Header["Content-Type"] = 0, []string{strings.TrimPrefix(header, "Content-Type: ")}
			r.Body = io.NopCloser(strings.NewReader(body))
			n.add("%v", r.ParseMultipartForm(1))
		},
	},
	{
		name:    "a form",
		request: post("a=1&b=2", "Content-Type: application/x-www-form-urlencoded"),
		handle: func(n *notes, _ http.ResponseWriter, r *http.Request) {
			n.add("%v %v", r.ParseForm(), r.Form)
		},
	},
	{
		name:    "a query",
		request: "GET /a?q=1 HTTP/1.1\r\nHost: a\r\n\r\n" + followUp,
		handle:  func(n *notes, _ http.ResponseWriter, r *http.Request) { n.add("%s", r.FormValue("q")) },
	},
	{
		name:    "fields that the handler sets",
		request: post("hello"),
		handle: func(_ *notes, _ http.ResponseWriter, r *http.Request) {
			r.SetPathValue("mine", "1")
			r.RemoteAddr = "192.0.2.1:80"
			r.Body = http.NoBody
		},
	},
	{
		name:    "a path value that the handler sets",
		request: get(),
		handle:  func(_ *notes, _ http.ResponseWriter, r *http.Request) { r.SetPathValue("mine", "1") },
	},
	{
		name:    "a header that the handler replaces",
		request: get(),
		handle:  func(_ *notes, _ http.ResponseWriter, r *http.Request) { r.Header = http.Header{"A": {"b"}} },
	},
	{
		name:    "a context that the handler assigns",
		request: get(),
		handle: func(_ *notes, _ http.ResponseWriter, r *http.Request) {
			*r = *r.WithContext(context.WithValue(r.Context(), assigned{}, "assigned"))
		},
	},

	{
		name:    "MaxBytesReader",
		request: post(strings.Repeat("x", 1000)),
		handle: func(n *notes, w http.ResponseWriter, r *http.Request) {
			readAll(n, http.MaxBytesReader(w, r.Body, 10))
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		},
	},
	{
		name:    "MaxBytesReader as the body",
		request: post(strings.Repeat("x", 1000)),
		handle: func(n *notes, w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, 10)
			readAll(n, r.Body)
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		},
	},
	{
		name:    "MaxBytesReader that suffices",
		request: post(strings.Repeat("x", 1000)),
		handle: func(n *notes, w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, 1000)
			readAll(n, r.Body)
		},
	},
	{
		name:    "MaxBytesReader and a form",
		files:   true,
		request: uploads(10_000),
		handle: func(n *notes, w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, 5000)
			n.add("%v", r.ParseMultipartForm(1))
		},
	},
	{
		name:    "MaxBytesReader of chunks",
		request: chunked(strings.Repeat("x", 1000), ""),
		handle: func(n *notes, w http.ResponseWriter, r *http.Request) {
			readAll(n, http.MaxBytesReader(w, r.Body, 10))
		},
	},
	{name: "MaxBytesHandler", request: post(strings.Repeat("x", 1000)), handle: below(func(n *notes) http.Handler {
		return http.MaxBytesHandler(
			http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { readAll(n, r.Body) }),
			10,
		)
	})},
	{
		name:    "MaxBytesReader after a flush",
		request: post(strings.Repeat("x", 1000)),
		handle: func(n *notes, w http.ResponseWriter, r *http.Request) {
			c := http.NewResponseController(w)
			_ = c.EnableFullDuplex()
			n.add("%v", c.Flush())
			readAll(n, http.MaxBytesReader(w, r.Body, 10))
		},
	},
	{
		name:    "MaxBytesReader on HTTP/2",
		request: strings.Repeat("x", 1000),
		http2:   true,
		handle: func(n *notes, w http.ResponseWriter, r *http.Request) {
			readAll(n, http.MaxBytesReader(w, r.Body, 10))
		},
	},
	{
		name:    "a body that nobody reads",
		request: post(strings.Repeat("x", 1000)),
		handle:  func(_ *notes, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") },
	},
	{
		name:    "a body that is closed",
		request: post(strings.Repeat("x", 1000)),
		handle: func(n *notes, w http.ResponseWriter, r *http.Request) {
			n.add("%v", r.Body.Close())
			_, _ = io.WriteString(w, "ok")
		},
	},
	{
		name:    "a body and a response at the same time",
		request: post("hello"),
		handle: func(n *notes, w http.ResponseWriter, r *http.Request) {
			c := http.NewResponseController(w)
			n.add("%v", c.EnableFullDuplex())
			_, _ = io.WriteString(w, "first")
			n.add("%v", c.Flush())
			readAll(n, r.Body)
		},
	},
	{
		name:    "Expect: 100-continue",
		request: post("hello", "Expect: 100-continue"),
		handle:  func(n *notes, _ http.ResponseWriter, r *http.Request) { readAll(n, r.Body) },
	},
	{
		name:    "Expect: 100-continue that nobody reads",
		request: post("hello", "Expect: 100-continue"),
		handle: func(_ *notes, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
		},
	},

	{name: "a stream", request: get(), handle: func(_ *notes, w http.ResponseWriter, _ *http.Request) {
		for range 3 {
			fmt.Fprint(w, "part")
			w.(http.Flusher).Flush()
		}
	}},
	{name: "a stream by controller", request: get(), handle: func(n *notes, w http.ResponseWriter, _ *http.Request) {
		for range 3 {
			fmt.Fprint(w, "part")
			n.add("%v", http.NewResponseController(w).Flush())
		}
	}},
	{
		name:    "a stream that watches its client",
		request: get(),
		handle: func(n *notes, w http.ResponseWriter, _ *http.Request) {
			gone := w.(closeNotifier).CloseNotify() // gin's Stream makes the same call
			n.add("%d", len(gone))
			fmt.Fprint(w, "part")
		},
	},
	{
		name:    "a stream on HTTP/2",
		request: "hello",
		http2:   true,
		handle: func(n *notes, w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				fmt.Fprint(w, "part")
				w.(http.Flusher).Flush()
			}
		},
	},
	{
		name:    "server-sent events",
		request: get("Accept: text/event-stream"),
		handle: func(_ *notes, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			for i := range 3 {
				fmt.Fprintf(w, "id: %d\ndata: x\n\n", i)
				_ = http.NewResponseController(w).Flush()
			}
		},
	},

	{name: "TimeoutHandler", request: get(), handle: below(func(*notes) http.Handler {
		return http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-A", "1")
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, "in time")
		}), time.Minute, "too late")
	})},
	{name: "TimeoutHandler that times out", request: get(), handle: below(func(*notes) http.Handler {
		return http.TimeoutHandler(
			http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
			time.Millisecond,
			"too late",
		)
	})},
	{
		name:    "TimeoutHandler and an upload",
		files:   true,
		request: uploads(1000),
		handle: below(func(n *notes) http.Handler {
			return http.TimeoutHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				n.add("%v", r.ParseMultipartForm(1))
			}), time.Minute, "too late")
		}),
	},
	{name: "ServeContent", request: get("Range: bytes=2-5"), handle: serveFile},
	{name: "ServeContent of a whole file", request: get(), handle: serveFile},
	{
		name:    "ServeContent that has not changed",
		request: get("If-Modified-Since: Sun, 06 Nov 2044 08:49:37 GMT"),
		handle:  serveFile,
	},
	{
		name:    "a redirect",
		request: get(),
		handle:  below(func(*notes) http.Handler { return http.RedirectHandler("/b", http.StatusFound) }),
	},

	{name: "a ReverseProxy", request: post("hello"), handle: reverse("/echo")},
	{
		name:    "a ReverseProxy of chunks and trailers",
		request: chunked("hello", "X-Sum: 1\r\n", "Trailer: X-Sum"),
		handle:  reverse("/echo"),
	},
	{name: "a ReverseProxy of a stream", request: get(), handle: reverse("/stream")},
	{name: "a ReverseProxy of early hints", request: get(), handle: reverse("/hints")},
	{
		name:    "a ReverseProxy of an upgrade",
		request: get("Connection: Upgrade", "Upgrade: x") + "frame",
		handle:  reverse("/upgrade"),
	},
	{name: "a ReverseProxy of a service that breaks off", request: get(), handle: reverse("/abort")},
	{
		name:    "a ReverseProxy without a service",
		request: get(),
		handle: func(_ *notes, w http.ResponseWriter, r *http.Request) {
			p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "127.0.0.1:1"})
			p.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) {
				w.WriteHeader(http.StatusBadGateway)
			}
			p.ServeHTTP(w, r)
		},
	},

	{
		name:    "a hijack",
		request: get() + "hello\n",
		handle: hijackWith(
			func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) { return w.(http.Hijacker).Hijack() },
		),
	},
	{
		name:    "a hijack by controller",
		request: get() + "hello\n",
		handle: hijackWith(func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(w).Hijack()
		}),
	},
	{
		name:    "a hijack with a body",
		request: post("hello"),
		handle: hijackWith(
			func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) { return w.(http.Hijacker).Hijack() },
		),
	},
	{name: "a write after a hijack", request: get(), handle: func(n *notes, w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			n.add("%v", err)
			return
		}
		defer c.Close()
		_, err = io.WriteString(w, "x")
		n.add("%v", err)
	}},

	{name: "informational responses", request: get(), handle: func(_ *notes, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusProcessing)
		w.Header().Del("Link")
		w.WriteHeader(http.StatusAccepted)
	}},
	{
		name:    "100 Continue by the handler",
		request: post("hello", "Expect: 100-continue"),
		handle: func(n *notes, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusContinue)
			readAll(n, r.Body)
		},
	},
	{name: "trailers of a response", request: get("TE: trailers"), handle: trailers},
	{name: "trailers of a response on HTTP/2", request: "hello", http2: true, handle: trailers},
	{name: "trailers of a request", request: chunked("hello", "X-Sum: 1\r\n", "Trailer: X-Sum"), handle: trailers},
	{
		name:    "trailers of a request that no header announces",
		request: chunked("hello", "X-Sum: 1\r\n"),
		handle:  trailers,
	},

	{name: "a panic", request: get(), handle: func(*notes, http.ResponseWriter, *http.Request) { panic("boom") }},
	{name: "a panic after a body", request: get(), handle: func(_ *notes, w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "part")
		_ = http.NewResponseController(w).Flush()
		panic("boom")
	}},
	{
		name:    "a panic with a body of the request",
		request: post("hello"),
		handle:  func(*notes, http.ResponseWriter, *http.Request) { panic("boom") },
	},
	{name: "an invalid status", request: get(), handle: func(n *notes, w http.ResponseWriter, _ *http.Request) {
		defer func() { n.add("%v", recover()) }()
		w.WriteHeader(1)
	}},
	{
		name:    "an abort on HTTP/2",
		request: "hello",
		http2:   true,
		handle:  func(*notes, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	},

	{name: "a websocket by gorilla", handle: gorillaEcho, client: gorillaClient},
	{name: "a websocket by coder", handle: coderEcho, client: gorillaClient},

	{
		name:   "a client that hangs up",
		handle: untilGone,
		client: func(t *testing.T, n *notes, addr string) { hangUp(t, addr, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n", n) },
	},
	{
		name:   "a client that hangs up after an upload",
		files:  true,
		handle: untilGone,
		client: func(t *testing.T, n *notes, addr string) {
			body, header := upload(1000)
			hangUp(t, addr, strings.TrimSuffix(post(body, header), followUp), n)
		},
	},
	{name: "a client that hangs up within its body", client: func(t *testing.T, n *notes, addr string) {
		hangUp(t, addr, "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello", n)
	}, handle: func(n *notes, w http.ResponseWriter, r *http.Request) {
		// Without full duplex, Flush would wait for the rest of the request body.
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = r.Body.Read(make([]byte, 5))
		_ = http.NewResponseController(w).Flush()
		readAll(n, r.Body)
		w.WriteHeader(http.StatusBadRequest)
	}},
}

func serveFile(_ *notes, w http.ResponseWriter, r *http.Request) {
	f, err := os.Open("go.mod")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	http.ServeContent(w, r, "a.txt", time.Unix(1e9, 0), f)
}

func trailers(n *notes, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Trailer", "X-Announced")
	n.add("before %v", r.Trailer)
	readAll(n, r.Body)
	n.add("after %v", r.Trailer)
	fmt.Fprint(w, "body")
	w.Header().Set("X-Announced", "1")
	w.Header().Set(http.TrailerPrefix+"X-Late", "2")
}

// reverse returns a handler that forwards requests to another server with httputil.ReverseProxy. The parameter path is
// the path of these requests on the other server.
func reverse(path string) handlerFunc {
	return func(n *notes, w http.ResponseWriter, r *http.Request) {
		upstream := httptest.NewServer(http.HandlerFunc(upstream))
		defer upstream.Close()
		to, _ := url.Parse(upstream.URL)
		p := &httputil.ReverseProxy{
			Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.URL.Path = path },
			ErrorLog: log.New(io.Discard, "", 0), FlushInterval: -1,
		}
		defer upstream.CloseClientConnections()
		p.ServeHTTP(w, r)
	}
}

func upstream(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/echo":
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Sum")
		fmt.Fprintf(w, "%s %s %v %v", r.Method, b, r.Trailer, r.Header["Connection"])
		w.Header().Set("X-Sum", "2")
	case "/stream":
		fmt.Fprint(w, "part") // only one part, because the proxy may read two parts together
		w.(http.Flusher).Flush()
	case "/hints":
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
	case "/upgrade":
		c, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprint(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello")
		_ = buf.Flush()
	case "/abort":
		fmt.Fprint(w, "part")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func hijackWith(hijack func(http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error)) handlerFunc {
	return func(n *notes, w http.ResponseWriter, _ *http.Request) {
		c, buf, err := hijack(w)
		if err != nil {
			n.add("%v", err)
			return
		}
		defer c.Close()
		line, err := buf.ReadString('\n')
		n.add("%q %v", line, err)
		fmt.Fprint(buf, "raw bytes")
		n.add("%v", buf.Flush())
	}
}

func gorillaEcho(n *notes, w http.ResponseWriter, r *http.Request) {
	c, err := (&gorilla.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		n.add("%v", err)
		return
	}
	defer c.Close()
	kind, message, err := c.ReadMessage()
	n.add("%d %s %v", kind, message, err)
	n.add("%v", c.WriteMessage(kind, message))
}

func coderEcho(n *notes, w http.ResponseWriter, r *http.Request) {
	c, err := coder.Accept(w, r, nil)
	if err != nil {
		n.add("%v", err)
		return
	}
	kind, message, err := c.Read(context.Background())
	n.add("%v %s %v", kind, message, err)
	n.add("%v", c.Write(context.Background(), kind, message))
	n.add("%v", c.CloseNow())
}

func gorillaClient(t *testing.T, n *notes, addr string) {
	c, resp, err := gorilla.DefaultDialer.Dial("ws://"+addr+"/a", nil)
	if err != nil {
		n.got("dial: %v", err)
		return
	}
	defer c.Close()
	n.got("%s", resp.Status)
	if err := c.WriteMessage(gorilla.TextMessage, []byte("hello")); err != nil {
		t.Error(err)
	}
	_, message, err := c.ReadMessage()
	n.got("%s %v", message, err)
}

// untilGone sends a part of a response, and waits until the client has hung up. It then sets the status 500, like a
// handler after a failed query.
func untilGone(n *notes, w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		n.add("%v", r.ParseMultipartForm(1))
	}
	fmt.Fprint(w, "part")
	n.add("%v", http.NewResponseController(w).Flush())
	<-r.Context().Done()
	n.add("%v", r.Context().Err())
	w.WriteHeader(http.StatusInternalServerError)
}

// hangUp sends a request, and closes the connection after it has read the first line of the response.
func hangUp(t *testing.T, addr, request string, n *notes) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Error(err)
	}
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	line, err := bufio.NewReader(c).ReadString('\n')
	n.got("%q %v", line, err)
}
