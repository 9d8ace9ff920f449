package e2e

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// TestContainer runs the binary in the environment of an image of deploy/Containerfile and of the pod of
// deploy/kubernetes: alone in a read-only root, as a user without a name, with the pod's arguments. The probes must
// respond, calls must be counted and logged, pushes must find their certificates, and SIGTERM must end the binary
// properly.
func TestContainer(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can change the root directory")
	}
	const user, certificates = 65532, "/etc/ssl/certs/ca-certificates.crt"
	root := t.TempDir()
	static := []string{
		"env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-ldflags=-s -w", "-o",
		filepath.Join(root, "windowstat"), "./cmd/windowstat",
	}
	if err := run(t.Context(), "..", static...); err != nil {
		t.Fatal(err)
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "served")
	}))
	defer upstream.Close()
	// A receiver whose certificate is signed by a certificate of the image.
	pushed := make(chan struct{}, 1)
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
		select {
		case pushed <- struct{}{}:
		default:
		}
	}))
	defer receiver.Close()
	pemText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: receiver.Certificate().Raw})
	if err := os.MkdirAll(filepath.Join(root, filepath.Dir(certificates)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, certificates), pemText, 0o644); err != nil {
		t.Fatal(err)
	}

	pod := readPod(t)
	log := filepath.Join(root, pod.log)
	if err := errors.Join(os.MkdirAll(log, 0o755), os.Chown(log, user, user), os.Chmod(root, 0o555)); err != nil {
		t.Fatal(err)
	}
	clients, pages := freeAddress(t), freeAddress(t)
	args := append(pod.args, "--remote-write.url="+receiver.URL)
	for i, arg := range args {
		args[i] = strings.NewReplacer("http://127.0.0.1:8000", upstream.URL, "0.0.0.0:8080", clients,
			"0.0.0.0:9719", pages).Replace(arg)
	}
	p := command(t, "/windowstat", args...)
	p.Env = []string{}
	p.Stdout, p.Stderr = os.Stderr, os.Stderr
	p.SysProcAttr = &syscall.SysProcAttr{
		Chroot:     root,
		Credential: &syscall.Credential{Uid: user, Gid: user, NoSetGroups: true},
	}
	p.Dir = "/"
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	for _, probe := range pod.probes {
		answer(t, "http://"+pages+probe)
	}
	if body := answer(t, "http://"+clients+"/anything"); body != "served" {
		t.Errorf("the service answers %q through the proxy", body)
	}
	if page := answer(t, "http://"+pages+"/metrics"); !strings.Contains(page, "windowstat_pass_total") {
		t.Error("the page of metrics has no calls")
	}
	select {
	case <-pushed:
	case <-time.After(catchUp):
		t.Error("nothing was pushed to a server whose certificate is known")
	}
	if err := errors.Join(p.Process.Signal(syscall.SIGTERM), p.Wait()); err != nil {
		t.Errorf("it does not end well: %v", err)
	}
	if files, err := os.ReadDir(log); err != nil || len(files) == 0 {
		t.Errorf("the log has %d files: %v", len(files), err)
	}
}

// A pod holds the settings of windowstat's container in deploy/kubernetes.
type pod struct {
	args, probes []string
	log          string
}

func readPod(t *testing.T) (p pod) {
	t.Helper()
	text, err := os.ReadFile("../deploy/kubernetes/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type probe struct {
		HTTPGet struct{ Path string } `yaml:"httpGet"`
	}
	var deployment struct {
		Spec struct {
			Template struct {
				Spec struct {
					InitContainers []struct {
						Name         string
						Args         []string
						Readiness    probe `yaml:"readinessProbe"`
						Liveness     probe `yaml:"livenessProbe"`
						VolumeMounts []struct {
							MountPath string `yaml:"mountPath"`
						} `yaml:"volumeMounts"`
					} `yaml:"initContainers"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &deployment); err != nil { // the first document
		t.Fatal(err)
	}
	for _, c := range deployment.Spec.Template.Spec.InitContainers {
		if c.Name == "windowstat" && len(c.VolumeMounts) == 1 {
			p = pod{
				slices.Clone(c.Args),
				[]string{c.Readiness.HTTPGet.Path, c.Liveness.HTTPGet.Path},
				c.VolumeMounts[0].MountPath,
			}
		}
	}
	if len(p.args) == 0 || !slices.Contains(p.args, "--metric-log.dir="+p.log) {
		t.Fatalf("the pod has no container windowstat with a log in a volume: %+v", p)
	}
	return p
}

// answer gets a page as soon as a server serves it.
func answer(t *testing.T, url string) string {
	t.Helper()
	var last error
	for begin := time.Now(); time.Since(begin) < catchUp; time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(url)
		if err != nil {
			last = err
			continue
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err == nil && resp.StatusCode == http.StatusOK {
			return string(body)
		}
		last = fmt.Errorf("%s %w", resp.Status, err)
	}
	t.Fatalf("%s: %v", url, last)
	return ""
}
