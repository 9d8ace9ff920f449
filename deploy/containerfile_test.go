package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	appsv1 "k8s.io/api/apps/v1"
)

// stages returns the stages of the Containerfile, as a builder parses them.
func stages(t *testing.T) []instructions.Stage {
	t.Helper()
	text, err := os.ReadFile("Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Warnings) > 0 {
		t.Errorf("the builder warns: %v", parsed.Warnings)
	}
	list, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// The image has the binary, certificates, and an unprivileged user. The pods of the example run as the same user.
func TestImageHasNothingBesides(t *testing.T) {
	list := stages(t)
	last := list[len(list)-1]
	if last.BaseName != "scratch" {
		t.Errorf("the image is from %s", last.BaseName)
	}
	var copied []string
	var user string
	for _, c := range last.Commands {
		switch c := c.(type) {
		case *instructions.CopyCommand:
			copied = append(copied, c.DestPath)
		case *instructions.UserCommand:
			user, _, _ = strings.Cut(c.User, ":")
		case *instructions.RunCommand:
			t.Error("there is nothing to run in an empty image")
		}
	}
	if !slices.Equal(copied, []string{"/windowstat", "/etc/ssl/certs/ca-certificates.crt"}) {
		t.Errorf("the image has %q", copied)
	}
	id, err := strconv.ParseInt(user, 10, 64)
	if err != nil || id == 0 {
		t.Errorf("the image runs as %q, which Kubernetes cannot tell from root", user)
	}
	c := of[*appsv1.Deployment](read(t, "deployment.yaml"))[0].Spec.Template.Spec.InitContainers[0]
	if c.Name != "windowstat" || c.SecurityContext == nil || c.SecurityContext.RunAsUser == nil ||
		*c.SecurityContext.RunAsUser != id {
		t.Errorf("the pod does not run windowstat as %d", id)
	}
}

// The image is built and run if a builder is available.
func TestImageIsBuilt(t *testing.T) {
	if testing.Short() {
		t.Skip("loads an image with Go")
	}
	builder := ""
	for _, name := range []string{"podman", "docker"} {
		if exec.Command(name, "info").Run() == nil {
			builder = name
			break
		}
	}
	if builder == "" {
		t.Skip("neither podman nor docker works here; the e2e test runs the binary in an empty root")
	}
	const image = "windowstat:test"
	if out, err := exec.Command(builder, "build", "-t", image, "-f", "Containerfile", "..").
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(builder, "run", "--rm", "--read-only", image, "version").CombinedOutput(); err != nil ||
		!bytes.Contains(out, []byte("windowstat version")) {
		t.Errorf("%v\n%s", err, out)
	}
}
