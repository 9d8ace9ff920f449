package webconfig

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// hashed returns the hash of a password for the file, with the minimum cost.
func hashed(t *testing.T, password string) string {
	t.Helper()
	b, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Errors contain the path of the file.
func TestErrorsNameTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "web.yml")
	for text, want := range map[string]string{
		"nonsense: 1":                                              "nonsense",
		"basic_auth_users: {a: b}":                                 "bcrypt",
		"http_server_config: {headers: {X: y}}":                    `"X"`,
		"tls_server_config: {cert_file: no.pem}":                   "key",
		"tls_server_config: {cert_file: no.pem, key_file: no.pem}": filepath.Join(dir, "no.pem"),
		"tls_server_config: {cert_file: a, key_file: b, client_auth_type: c, cert: xy}": dir,
	} {
		write(t, path, text)
		if _, err := Open(path); err == nil || !strings.HasPrefix(err.Error(), path+": ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Open(path + ".missing"); err == nil || !strings.Contains(err.Error(), path+".missing") {
		t.Error(err)
	}
	write(t, path, "")
	if _, err := Open(path); err != nil {
		t.Error(err)
	}
}

// Changes of the file take effect within a second. An invalid or empty file has no effect.
func TestChangesTakeEffect(t *testing.T) { synctest.Test(t, testChanges) }

func testChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "web.yml")
	with := func(password string) string {
		return "http_server_config: {headers: {X-Frame-Options: deny}}\nbasic_auth_users: {a: " + hashed(t,
			password) + "}\n"
	}
	write(t, path, with("first"))
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler(), Protocols: new(http.Protocols)}
	f.Protect(server, nil, slog.New(slog.DiscardHandler))
	go f.Run(t.Context())
	change := func(text string) {
		t.Helper()
		write(t, path, text)
		time.Sleep(pollInterval)
		synctest.Wait()
	}
	expect := func(when, path, password string, want int) {
		t.Helper()
		r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
		if password != "" {
			r.SetBasicAuth("a", password)
		}
		if server.Handler.ServeHTTP(w, r); w.Code != want || w.Header().Get("X-Frame-Options") != "deny" {
			t.Errorf("%s: %s with %q is %d, want %d", when, path, password, w.Code, want)
		}
	}
	for range 2 { // compared, then cached
		expect("first", "/metrics", "first", 404)
	}
	expect("first", "/metrics", "", 401)
	expect("first", "/metrics", "second", 401)
	expect("first", "/-/healthy", "", 404)
	expect("first", "/-/healthy/x", "", 401)
	change(with("second"))
	expect("changed", "/metrics", "first", 401)
	expect("changed", "/metrics", "second", 404)
	for _, invalid := range []string{"nonsense: 1\n", ""} {
		change(invalid)
		expect("invalid", "/metrics", "second", 404)
		expect("invalid", "/metrics", "first", 401)
		expect("invalid", "/metrics", "", 401)
	}
	change(with("third") + "rate_limit: {burst: 1, interval: 1h}\n")
	for range 3 {
		expect("with a limit", "/metrics", "wrong", 401) // does not use up the limit
		expect("with a limit", "/-/ready", "", 404)
	}
	expect("with a limit", "/metrics", "third", 404)
	expect("with a limit", "/metrics", "third", 429)
}
