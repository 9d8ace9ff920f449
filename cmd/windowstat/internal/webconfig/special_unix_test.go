//go:build unix

package webconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// put replaces a file by a FIFO without a writer, or by a link to a device that never ends.
var put = map[string]func(path string) error{
	"FIFO":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
	"/dev/zero": func(path string) error { return os.Symlink("/dev/zero", path) },
	"directory": func(path string) error { return os.Mkdir(path, 0o700) },
	"large file": func(path string) error {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
		return os.Truncate(path, 8<<30)
	},
}

// certificate writes a certificate with a serial number, and its key.
func certificate(t *testing.T, dir string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
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
		write(t, filepath.Join(dir, name), string(pem.EncodeToMemory(block)))
	}
}

// serial returns the serial number of the certificate in a handshake.
func serial(t *testing.T, server *http.Server) int64 {
	t.Helper()
	c, err := server.TLSConfig.GetConfigForClient(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(c.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf.SerialNumber.Int64()
}

// The file, a certificate, a key or the CAs of clients become a FIFO, a device, a directory or a file of 8 GiB. The
// reader neither waits nor reads it, and requests and handshakes have the previous configuration. Afterwards, a renewed
// certificate takes effect.
func TestSpecialFilesHaveNoEffect(t *testing.T) {
	for _, name := range []string{"web.yml", "cert.pem", "key.pem", "ca.pem"} {
		for kind, put := range put {
			t.Run(name+" is a "+strings.ReplaceAll(kind, "/", " "), func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "web.yml")
				const config = "tls_server_config: {cert_file: cert.pem, key_file: key.pem, client_ca_file: ca.pem, " +
					"client_auth_type: VerifyClientCertIfGiven}\n" +
					"http_server_config: {headers: {X-Frame-Options: deny}}\n"
				write(t, path, config)
				certificate(t, dir, 1)
				ca, err := os.ReadFile(filepath.Join(dir, "cert.pem"))
				if err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(dir, "ca.pem"), string(ca))
				f, err := Open(path)
				if err != nil {
					t.Fatal(err)
				}
				server := &http.Server{Handler: http.NotFoundHandler(), Protocols: new(http.Protocols)}
				f.Protect(server, nil, slog.New(slog.DiscardHandler))
				if got := serial(t, server); got != 1 || f.state.Load().tls.ClientCAs == nil {
					t.Errorf("certificate %d, want 1 and CAs of clients", got)
				}

				victim := filepath.Join(dir, name)
				old, err := os.ReadFile(victim)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(victim); err != nil {
					t.Fatal(err)
				}
				if err := put(victim); err != nil {
					t.Skip(err)
				}
				f.reload()
				if _, err := Open(path); err == nil || !strings.Contains(err.Error(), victim) {
					t.Errorf("a new File: %v", err)
				}
				w := httptest.NewRecorder()
				server.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/-/healthy", nil))
				if w.Header().Get("X-Frame-Options") != "deny" || serial(t, server) != 1 {
					t.Errorf("headers %v, certificate %d", w.Header(), serial(t, server))
				}

				if err := os.Remove(victim); err != nil {
					t.Fatal(err)
				}
				write(t, victim, string(old))
				certificate(t, dir, 2)
				if f.reload(); serial(t, server) != 2 {
					t.Errorf("certificate %d, want 2", serial(t, server))
				}
			})
		}
	}
}
