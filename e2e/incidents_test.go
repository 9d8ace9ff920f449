package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"testing"
	"time"
)

// startDemo runs windowstat demo with an incident after some time. It returns the address of the live page, and the
// beginning of the incident.
func startDemo(t *testing.T, incident string, after time.Duration) (url string, begin time.Time) {
	t.Helper()
	addr := freeAddress(t)
	c := command(t, buildWindowstat(t), "demo", "--web.listen-address="+addr, "--incident="+incident,
		"--incident.after="+after.String())
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.Process != nil {
			_ = c.Process.Signal(os.Interrupt) // the demo then removes its log
			_ = c.Wait()
		}
	})
	startReady(t, c, listens(addr))
	announcement := regexp.MustCompile(`^incident +` + incident + ` from (\S+) on`)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := announcement.FindStringSubmatch(lines.Text()); m != nil {
			go io.Copy(io.Discard, out) //nolint:errcheck // ends with the process
			if begin, err = time.Parse(time.RFC3339, m[1]); err != nil {
				t.Fatal(err)
			}
			return "http://" + addr + "/live/", begin
		}
	}
	t.Fatal("the demo does not announce its incident")
	return "", begin
}

// keepIncidents is the environment variable that enables TestIncidentPictures.
const keepIncidents = "WINDOWSTAT_E2E_INCIDENTS"

// TestIncidentPictures keeps pictures of the live page in each incident of the demo, for people to check: 2, 15 and 40
// seconds after its beginning, at three widths. The incident ends after 30 seconds, so the last pictures are calm. The
// incidents follow each other, because a busy machine makes the resources slow, which is trouble as well.
func TestIncidentPictures(t *testing.T) {
	if os.Getenv(keepIncidents) == "" {
		t.Skip("make pictures runs it, with " + keepIncidents)
	}
	browser := startBrowser(t)
	// The header compares the calls of the retries with the calls of the three minutes before.
	for incident, before := range map[string]time.Duration{
		"hang": time.Minute, "limit": time.Minute, "retries": 4 * time.Minute,
	} {
		t.Run(incident, func(t *testing.T) {
			url, begin := startDemo(t, incident, before)
			x := openTab(t, browser, url)
			x.await(t, `byId('state').textContent === 'live'`)
			for _, seconds := range []int{2, 15, 40} {
				time.Sleep(time.Until(begin.Add(time.Duration(seconds) * time.Second)))
				for _, width := range []int64{400, 900, 1600} {
					x.resize(t, width, 900, width < 600)
					for _, scheme := range []string{"light", "dark"} {
						x.scheme(t, scheme)
						x.keep(t, fmt.Sprintf("%s-%d-%d-%s", incident, width, seconds, scheme))
					}
				}
			}
		})
	}
}
