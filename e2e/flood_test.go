package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A flood sends messages on a connection as fast as the server reads them, and reads the responses.
type flood func(ctx context.Context, c net.Conn) error

// repeat sends begin, and then a message over and over.
func repeat(begin, message []byte) flood {
	many := bytes.Repeat(message, max(1, 1<<14/len(message)))
	return func(ctx context.Context, c net.Conn) error {
		go func() { _, _ = io.Copy(io.Discard, c) }()
		_, err := c.Write(begin)
		for err == nil && ctx.Err() == nil {
			_, err = c.Write(many)
		}
		return err
	}
}

// http2Begin returns the first bytes of an HTTP/2 connection.
func http2Begin() []byte {
	var b bytes.Buffer
	b.WriteString(http2.ClientPreface)
	_ = http2.NewFramer(&b, nil).WriteSettings()
	return b.Bytes()
}

// frame returns the bytes that write writes.
func frame(write func(*http2.Framer) error) []byte {
	var b bytes.Buffer
	_ = write(http2.NewFramer(&b, nil))
	return b.Bytes()
}

var (
	pings        = repeat(http2Begin(), frame(func(f *http2.Framer) error { return f.WritePing(false, [8]byte{}) }))
	settings     = repeat(http2Begin(), frame(func(f *http2.Framer) error { return f.WriteSettings() }))
	smallHeaders = repeat(nil, []byte("GET /-/healthy HTTP/1.1\r\nHost: x\r\n"+tinyHeaders(15<<10)+"\r\n"))
	pipelined    = repeat(nil, []byte("GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n"))
)

// resets opens streams and resets each of them immediately.
func resets(ctx context.Context, c net.Conn) error {
	go func() { _, _ = io.Copy(io.Discard, c) }()
	var block, batch bytes.Buffer
	e := hpack.NewEncoder(&block)
	batch.Write(http2Begin())
	f := http2.NewFramer(&batch, nil)
	for stream := uint32(1); ctx.Err() == nil; {
		for range 200 {
			block.Reset()
			for _, h := range [][2]string{
				{":method", "GET"},
				{":scheme", "https"},
				{":authority", "x"},
				{":path", "/-/healthy"},
			} {
				_ = e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
			}
			_ = f.WriteHeaders(http2.HeadersFrameParam{
				StreamID: stream, BlockFragment: block.Bytes(),
				EndHeaders: true, EndStream: true,
			})
			_ = f.WriteRSTStream(stream, http2.ErrCodeCancel)
			stream += 2
		}
		if _, err := c.Write(batch.Bytes()); err != nil {
			return err
		}
		batch.Reset()
	}
	return nil
}

// liveStreams opens a stream of the live page and reads it until the server ends it.
func liveStreams(_ context.Context, c net.Conn) error {
	_, err := io.WriteString(c,
		"GET /live/stream HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n")
	if err == nil {
		_, err = io.Copy(io.Discard, c)
	}
	return err
}

// webTLS writes a certificate and returns the text of a --web.config.file with it, and with HTTP/2.
func webTLS(t *testing.T, dir string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\nhttp_server_config: {http2: true}\n"
}

// overTLS makes a TLS connection of HTTP/2 on top of c.
func overTLS(ctx context.Context, c net.Conn) (net.Conn, error) {
	client := tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	return client, client.HandshakeContext(ctx)
}

// attackUntil runs a flood on connections until ctx ends. A connection that the server closes is opened again.
func attackUntil(ctx context.Context, d net.Dialer, to string, secure bool, f flood, made func(net.Conn) net.Conn) {
	for ctx.Err() == nil {
		c, err := d.DialContext(ctx, "tcp", to)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		c = made(c)
		end := context.AfterFunc(ctx, func() { _ = c.Close() })
		over := c
		if secure {
			over, err = overTLS(ctx, c)
		}
		if err == nil {
			err = f(ctx, over)
		}
		end()
		_ = c.Close()
		if err != nil && !strings.Contains(err.Error(), "reset") {
			time.Sleep(time.Millisecond)
		}
	}
}
