package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/windowstat/windowstat/dashboards"
)

var update = flag.Bool("update", false, "write kubernetes/rules.yaml again instead of comparing it")

// object is an object of Kubernetes, parsed as its own type.
type object interface {
	GetName() string
	GetLabels() map[string]string
}

// objects reads documents of YAML as the types that they say they are. A field that a type does not have is an error.
func objects(t *testing.T, text []byte) (list []object) {
	t.Helper()
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var is struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(document, &is); err != nil {
			t.Fatal(err)
		}
		var into object
		switch is.APIVersion + " " + is.Kind {
		case "apps/v1 Deployment":
			into = new(appsv1.Deployment)
		case "v1 Service":
			into = new(corev1.Service)
		case "v1 ConfigMap":
			into = new(corev1.ConfigMap)
		case "monitoring.coreos.com/v1 ServiceMonitor":
			into = new(monitoringv1.ServiceMonitor)
		case "monitoring.coreos.com/v1 PodMonitor":
			into = new(monitoringv1.PodMonitor)
		case "monitoring.coreos.com/v1 PrometheusRule":
			into = new(monitoringv1.PrometheusRule)
		default:
			t.Fatalf("no test reads a %s of %s", is.Kind, is.APIVersion)
		}
		if err := yaml.UnmarshalStrict(document, into); err != nil {
			t.Errorf("%s: %v", is.Kind, err)
		}
		list = append(list, into)
	}
	return list
}

// read reads the objects of a file.
func read(t *testing.T, file string) []object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("kubernetes", file))
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, text)
}

// of are the objects of one type.
func of[T object](list []object) (found []T) {
	for _, o := range list {
		if x, ok := o.(T); ok {
			found = append(found, x)
		}
	}
	return found
}

// kubectl apply -k applies objects that match each other, with the dashboards of the tree.
func TestKustomization(t *testing.T) {
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, text)
	maps := of[*corev1.ConfigMap](all)
	want, err := fs.Glob(dashboards.FS(), "*.json")
	if err != nil || len(maps) != len(want) {
		t.Errorf("%d ConfigMaps for %d dashboards; add what is missing to dashboards/kustomization.yaml (%v)",
			len(maps), len(want), err)
	}
	for _, m := range maps {
		for name, got := range m.Data {
			text, err := fs.ReadFile(dashboards.FS(), name)
			if err != nil || got != string(text) || !json.Valid(text) {
				t.Errorf("%s: %s is not the dashboard: %v", m.Name, name, err)
			}
			if m.Labels["grafana_dashboard"] == "" {
				t.Errorf("%s has no label for Grafana", m.Name)
			}
			// kubectl stores the applied object in an annotation of at most 256 KiB.
			if len(text) > 200<<10 {
				t.Errorf("%s has %d bytes, too many for kubectl apply", name, len(text))
			}
		}
	}
	if n := len(of[*monitoringv1.ServiceMonitor](all)) + len(of[*monitoringv1.PodMonitor](all)); n != 2 {
		t.Errorf("%d monitors; with more than two, targets would be scraped twice", n)
	}
	if len(of[*appsv1.Deployment](all)) != 1 || len(of[*monitoringv1.PrometheusRule](all)) != 1 {
		t.Error("the service or the rules are missing")
	}
}

// The monitors select the Deployment and its Service, and name their ports.
func TestMonitorsFindThePods(t *testing.T) {
	service := read(t, "deployment.yaml")
	pods := of[*appsv1.Deployment](service)[0].Spec.Template
	var ports, numbers []string
	for _, c := range append(pods.Spec.Containers, pods.Spec.InitContainers...) {
		for _, p := range c.Ports {
			ports, numbers = append(ports, p.Name), append(numbers, fmt.Sprint(p.ContainerPort))
		}
	}
	selects := func(selector, labels map[string]string) error {
		for k, v := range selector {
			if labels[k] != v {
				return fmt.Errorf("it selects %s=%s, there is %q", k, v, labels[k])
			}
		}
		if len(selector) == 0 {
			return errors.New("it selects everything")
		}
		return nil
	}
	s := of[*corev1.Service](service)[0]
	if err := selects(s.Spec.Selector, pods.Labels); err != nil {
		t.Errorf("the Service: %v", err)
	}
	var named []string
	for _, p := range s.Spec.Ports {
		named = append(named, p.Name)
		if !slices.Contains(numbers, p.TargetPort.String()) {
			t.Errorf("the Service has port %s of pods, which have %q", p.TargetPort.String(), numbers)
		}
	}
	paths := map[string][]string{}
	for _, m := range of[*monitoringv1.ServiceMonitor](read(t, "servicemonitor.yaml")) {
		if err := selects(m.Spec.Selector.MatchLabels, s.Labels); err != nil {
			t.Errorf("ServiceMonitor %s: %v", m.Name, err)
		}
		for _, e := range m.Spec.Endpoints {
			paths["service"] = append(paths["service"], scraped(t, e.Path, e.Port, named, e.HonorTimestamps, e.Params))
		}
	}
	for _, m := range of[*monitoringv1.PodMonitor](read(t, "podmonitor.yaml")) {
		if err := selects(m.Spec.Selector.MatchLabels, pods.Labels); err != nil {
			t.Errorf("PodMonitor %s: %v", m.Name, err)
		}
		for _, e := range m.Spec.PodMetricsEndpoints {
			if e.Port == nil {
				t.Fatalf("PodMonitor %s names no port", m.Name)
			}
			paths["pod"] = append(paths["pod"], scraped(t, e.Path, *e.Port, ports, e.HonorTimestamps, e.Params))
		}
	}
	for kind, got := range paths {
		if !slices.Equal(got, []string{"/metrics", "/metrics/seconds"}) {
			t.Errorf("%s monitors scrape %q", kind, got)
		}
	}
}

// When a pod is to end, the service and the proxy serve on while it leaves the Service; then the service ends, and the
// proxy after it. All of it fits into the time that there is.
func TestTheProxyEndsAfterTheService(t *testing.T) {
	pod := of[*appsv1.Deployment](read(t, "deployment.yaml"))[0].Spec.Template.Spec
	if len(pod.Containers) != 1 || len(pod.InitContainers) != 1 {
		t.Fatalf("%d containers and %d init containers", len(pod.Containers), len(pod.InitContainers))
	}
	shop, proxy := pod.Containers[0], pod.InitContainers[0]
	if shop.Lifecycle == nil || shop.Lifecycle.PreStop == nil || shop.Lifecycle.PreStop.Sleep == nil ||
		shop.Lifecycle.PreStop.Sleep.Seconds < 5 {
		t.Error("the service does not wait until the pod has left the Service")
	} else if rest := *pod.TerminationGracePeriodSeconds - shop.Lifecycle.PreStop.Sleep.Seconds; rest < 20 {
		t.Errorf("%d seconds are left for the service and the proxy", rest)
	}
	if proxy.RestartPolicy == nil || *proxy.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Error("the proxy is no sidecar")
	}
	if slices.ContainsFunc(proxy.Args, func(arg string) bool { return strings.HasPrefix(arg, "--shutdown.delay") }) {
		t.Error("the proxy delays an end that comes when nobody asks any more")
	}
}

// The follower of Sentinel's logs is a sidecar that reads the volume of the application, and writes to another one. The
// monitors and the Service select its pods.
func TestSentinelSidecar(t *testing.T) {
	followed := of[*appsv1.Deployment](read(t, "sentinel.yaml"))[0].Spec.Template
	proxied := of[*appsv1.Deployment](read(t, "deployment.yaml"))[0].Spec.Template
	if fmt.Sprint(followed.Labels) != fmt.Sprint(proxied.Labels) {
		t.Errorf("the pods have the labels %v, want %v", followed.Labels, proxied.Labels)
	}
	follower := followed.Spec.InitContainers[0]
	if follower.RestartPolicy == nil || *follower.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Error("the follower is not a sidecar")
	}
	if len(follower.Ports) != 1 || follower.Ports[0].Name != "metrics" || follower.Ports[0].ContainerPort != 9719 {
		t.Errorf("the ports are %v", follower.Ports)
	}
	for _, m := range follower.VolumeMounts {
		flag := map[string]string{"logs": "--dir=", "state": "--state-dir="}[m.Name]
		if !slices.Contains(follower.Args, flag+m.MountPath) || m.ReadOnly != (m.Name == "logs") {
			t.Errorf("%+v does not fit the arguments %q", m, follower.Args)
		}
	}
	if logs := followed.Spec.Containers[0].VolumeMounts[0]; logs.Name != "logs" || logs.ReadOnly {
		t.Errorf("the application has the volume %+v", logs)
	}
}

// scraped is a path that is scraped, of a port that there is; single seconds with their own timestamps, by a cursor.
func scraped(t *testing.T, path, port string, ports []string, honor *bool, params map[string][]string) string {
	t.Helper()
	if !slices.Contains(ports, port) {
		t.Errorf("%s is scraped at port %q, there are %q", path, port, ports)
	}
	if strings.HasSuffix(path, "/seconds") && (honor == nil || !*honor || len(params["cursor"]) != 1) {
		t.Errorf("%s needs honorTimestamps and a cursor", path)
	}
	return path
}

// The rules equal dashboards/rules.
func TestRules(t *testing.T) {
	const path = "kubernetes/rules.yaml"
	want := "# The rules of dashboards/rules, written by go test -update in deploy. Put the limits of your service " +
		"into the first group of alerts.\n" +
		"apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: windowstat\nspec:\n  groups:\n"
	for _, file := range []string{"recording.yaml", "alerts.yaml"} {
		text, err := fs.ReadFile(dashboards.FS(), "rules/"+file)
		if err != nil {
			t.Fatal(err)
		}
		_, groups, ok := strings.Cut(string(text), "\ngroups:\n")
		if !ok {
			t.Fatalf("%s has no groups", file)
		}
		for line := range strings.Lines(groups) {
			want += strings.TrimRight("  "+line, " \n") + "\n"
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not as dashboards/rules; run make deploy (%v)", path, err)
	}
	rules, n := of[*monitoringv1.PrometheusRule](read(t, "rules.yaml"))[0], 0
	for _, g := range rules.Spec.Groups {
		n += len(g.Rules)
	}
	if len(rules.Spec.Groups) < 2 || n < 15 {
		t.Errorf("%d groups with %d rules", len(rules.Spec.Groups), n)
	}
}

// An unknown field is an error, as in kubectl.
func TestUnknownFieldsAreFound(t *testing.T) {
	text, err := os.ReadFile("kubernetes/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	wrong := strings.Replace(string(text), "readinessProbe:", "readynessProbe:", 1)
	first, _, _ := strings.Cut(wrong, "\n---\n")
	if err := yaml.UnmarshalStrict([]byte(first), new(appsv1.Deployment)); err == nil {
		t.Error("a misspelt field passes")
	}
}
