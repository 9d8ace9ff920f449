package e2e

import (
	"crypto/sha256"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// The picture of the live page in the documentation, and a file with the checksum of the picture and its words.
const (
	livePicture = "../docs/live.png"
	liveWords   = "../exporter/live/testdata/picture.txt"
)

// maxPicture limits the size of a picture in bytes.
const maxPicture = 200_000

// pictureWords returns the fixed words of a page: titles, labels and names of columns, one a line. Numbers are replaced
// by #, and names of resources are left out.
func pictureWords(t *testing.T, x *tab) string {
	t.Helper()
	return tell[string](t, x, `(() => {
		const own = e => [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.textContent).join(' ');
		const fixed = 'label, button, h2, h3, figcaption, figcaption span:not([id]), bdi, dt, th, .u-label, .hint';
		return [...document.querySelectorAll(fixed)]
			.filter(e => e.checkVisibility() && !e.closest('#rows'))
			.map(e => own(e).replace(/[↓↑]/g, '').replace(/(?<!\w)[\d,]*\d/g, '#').replace(/\s+/g, ' ').trim())
			.filter(text => text).map(text => text + '\n').join('');
	})()`)
}

// TestPictures takes the pictures of the documentation: with the flag -update. It shows the demo 20 seconds after the
// beginning of a hang. Package live has a test that compares the words of the picture with the page.
func TestPictures(t *testing.T) {
	if !*update {
		t.Skip("make pictures runs it, with -update")
	}
	t.Parallel()
	url, begin := startDemo(t, "hang", 130*time.Second)
	x := openTab(t, startBrowser(t), url)
	x.resize(t, 1400, 900, false)
	x.await(t, `byId('state').textContent === 'live'`)
	time.Sleep(time.Until(begin.Add(20 * time.Second)))
	x.await(t, `byId('alarm').textContent.includes('hangs since') && !byId('running').hidden`)
	png, err := chromedp.Run(x.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if len(png) > maxPicture {
		t.Errorf("the picture has %d bytes; it should have %d at most", len(png), maxPicture)
	}
	if points := tell[int](t, x, `charts.cpu.plot.data[1].filter(v => v !== null).length`); points < 100 {
		t.Errorf("the charts of the process have only %d seconds", points)
	}
	text := fmt.Sprintf("%x\n%s", sha256.Sum256(png), pictureWords(t, x))
	for path, content := range map[string][]byte{livePicture: png, liveWords: []byte(text)} {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
