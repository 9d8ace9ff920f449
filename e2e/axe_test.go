package e2e

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/windowstat/windowstat/collector"
)

// axe finds obstacles that keep people from using a page.
var axe = program{
	"axe-core-4.14.1.js",
	npm("axe-core", "4.14.1",
		"sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
		"package/axe.min.js"),
}

// npm extracts a file from a package with a known checksum. It runs no code of the package.
func npm(name, version, integrity, file string) func(ctx context.Context, dir, executable string) error {
	return func(ctx context.Context, dir, executable string) error {
		if _, err := exec.LookPath("npm"); err != nil {
			return fmt.Errorf("npm, for fetching %s, is missing (apt-get install npm): %w", name, err)
		}
		if err := run(ctx, dir, "npm", "pack", "--ignore-scripts", name+"@"+version); err != nil {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, name+"-"+version+".tgz"))
		if err != nil {
			return err
		}
		if sum := sha512.Sum512(b); "sha512-"+base64.StdEncoding.EncodeToString(sum[:]) != integrity {
			return fmt.Errorf("%s %s has another checksum than %s", name, version, integrity)
		}
		z, err := gzip.NewReader(strings.NewReader(string(b)))
		if err != nil {
			return err
		}
		for all := tar.NewReader(z); ; {
			h, err := all.Next()
			if errors.Is(err, io.EOF) {
				return fmt.Errorf("%s %s has no %s", name, version, file)
			} else if err != nil {
				return err
			}
			if h.Name != file {
				continue
			}
			text, err := io.ReadAll(all)
			if err != nil {
				return err
			}
			return os.WriteFile(executable, text, 0o644)
		}
	}
}

// checkAxe runs axe on the current state of a page: light and dark, on a phone and on a wide screen.
func checkAxe(t *testing.T, x *tab, state string) {
	t.Helper()
	for _, width := range []int64{400, 1600} {
		x.resize(t, width, 900, width == 400)
		for _, scheme := range []string{"light", "dark"} {
			x.scheme(t, scheme)
			x.run(
				t,
				`window.found = null;
				axe.run({resultTypes: ['violations']})
					.then(r => { window.found = r; }, e => { window.found = {error: String(e)}; })`,
			)
			x.await(t, `window.found !== null`)
			got := tell[string](
				t,
				x,
				`found.error || found.violations.flatMap(v => v.nodes.map(
					n => v.id + ': ' + v.help + ': ' + n.html.slice(0, 200) + ' ' + n.failureSummary)).join('\n')`,
			)
			if passes := tell[int](t, x, `found.passes ? found.passes.length : 0`); got != "" || passes < 10 {
				t.Errorf(
					"%s, %d pixels, %s: %d rules are met, and these are not:\n%s",
					state,
					width,
					scheme,
					passes,
					got,
				)
			}
		}
	}
}

// openWithAxe opens a page and adds axe to it.
func openWithAxe(t *testing.T, browser context.Context, url string, but ...string) *tab {
	t.Helper()
	script, err := os.ReadFile(axe.path(t))
	if err != nil {
		t.Fatal(err)
	}
	x := openTab(t, browser, url, but...)
	x.await(t, `byId('state').textContent === 'live'`)
	x.do(t, chromedp.Evaluate[chromedp.Void](string(script)))
	return x
}

// liveAccessible runs axe on each state of the page without trouble.
func liveAccessible(t *testing.T, browser context.Context) {
	p := newPaced(
		t,
		time.Now().Add(-90*time.Second),
		[]string{"GET /", "GET /search", "db: orders"},
		collector.Options{},
	)
	p.calls = func(resource int, second int64) count {
		return count{pass: int(20 + 10*math.Sin(float64(second))), block: resource}
	}
	p.takes = func(int64, int) time.Duration { return time.Millisecond }
	x := openWithAxe(t, browser, serveLive(t, p.stats, nil), "404") // a resource that does not exist
	checkAxe(t, x, "empty")
	for range 90 {
		p.tick()
	}
	stop := p.start(t)
	x.await(t, `document.querySelectorAll('#rows tr').length === 3`)
	checkAxe(t, x, "the table")
	x.run(t, `choose('GET /search')`)
	x.await(t, `!byId('details').hidden`)
	checkAxe(t, x, "a resource")
	x.run(t, `zoom(lastShown() - 20, lastShown() - 5)`)
	checkAxe(t, x, "zoomed")
	x.run(t, `zoom(); choose('nothing')`)
	x.await(t, `!byId('gone').hidden`)
	checkAxe(t, x, "a resource that is gone")
	x.run(
		t,
		`choose(null);
		byId('search').value = 'xyz';
		byId('search').dispatchEvent(new Event('input'));
		byId('pause').click()`,
	)
	x.await(t, `!byId('none').hidden`)
	checkAxe(t, x, "nothing found, paused")
	stop()
	x.run(t, `byId('pause').click(); showStatus('the server does not answer; trying again', true)`)
	checkAxe(t, x, "no answer")
}

// liveAccessibleTrouble runs axe on the page during a hang, with other resources that fail and refuse calls.
func liveAccessibleTrouble(t *testing.T, browser context.Context) {
	p := newHang(t, 15)
	hang := p.ticked
	p.ticked = func(route int, second int64, c count) {
		hang(route, second, c)
		p.stats.Record("GET /fails", collector.Completed{Err: errors.New("no")})
		p.stats.Block(t.Context(), "GET /refuses", "full")
	}
	p.tick()
	p.tick()
	t.Cleanup(p.start(t))
	x := openWithAxe(t, browser, serveLive(t, p.stats, nil))
	x.await(t, `document.querySelectorAll('#rows .troubled').length === 6 && !byId('running').hidden`)
	if n := tell[int](t, x, `document.querySelectorAll('#rows .marked').length`); n == 0 {
		t.Error("no cell is highlighted")
	}
	checkAxe(t, x, "the table")
	x.run(t, `choose('db: products')`)
	x.await(t, `!byId('details').hidden`)
	checkAxe(t, x, "a resource")
}
