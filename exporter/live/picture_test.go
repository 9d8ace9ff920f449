package live

import (
	"crypto/sha256"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// The picture of the page in the documentation has the words of the page. The file testdata/picture.txt contains the
// checksum of the picture and its words, one title, label or column a line, with # for numbers; make pictures writes
// both. If this test fails because the page has changed, make pictures takes the picture again.
func TestPictureIsCurrent(t *testing.T) {
	b, err := os.ReadFile("testdata/picture.txt")
	if err != nil {
		t.Fatal(err)
	}
	sum, text, _ := strings.Cut(string(b), "\n")
	words := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	picture, err := os.ReadFile("../../docs/live.png")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(picture)); got != sum {
		t.Errorf("testdata/picture.txt belongs to another picture than docs/live.png: %s", got)
	}
	titles, texts := pageWords(t)
	for _, title := range titles {
		if !slices.Contains(words, title) {
			t.Errorf("docs/live.png does not show %q", title)
		}
	}
	for _, line := range words {
		for part := range strings.SplitSeq(line, "#") {
			if part = strings.Trim(part, ": "); part != "" && !slices.Contains(texts, part) {
				t.Errorf("the page does not have %q of docs/live.png", part)
			}
		}
	}
	if len(titles) < 25 || len(words) < 40 {
		t.Errorf("%d titles, %d words of the picture: the test misses most of them", len(titles), len(words))
	}
}

// pageWords returns the titles that the page always shows, and all fixed texts in its source.
func pageWords(t *testing.T) (titles, texts []string) {
	t.Helper()
	page, err := html.Parse(strings.NewReader(asset("index.html")))
	if err != nil {
		t.Fatal(err)
	}
	for n := range page.Descendants() {
		text := strings.Join(strings.Fields(n.Data), " ")
		if n.Type != html.TextNode || text == "" {
			continue
		}
		texts = append(texts, text)
		if isTitle(n.Parent) && !strings.Contains(text, "{") {
			titles = append(titles, text)
		}
	}
	scripts := asset("app.js") + asset("table.js")
	for _, m := range regexp.MustCompile(`'([^'\n]*)'`).FindAllStringSubmatch(scripts, -1) {
		texts = append(texts, strings.Trim(m[1], ": "))
	}
	// Titles of columns, and names of lines that are not optional.
	for _, m := range regexp.MustCompile(`\b(?:title|label): '([^']+)'[^}\n]*`).FindAllStringSubmatch(scripts, -1) {
		if !strings.Contains(m[0], "optional") {
			titles = append(titles, m[1])
		}
	}
	return titles, texts
}

// isTitle reports whether an element is a title or a label that the live page always shows.
func isTitle(n *html.Node) bool {
	if !slices.Contains([]string{"label", "button", "h2", "h3", "figcaption", "span", "bdi"}, n.Data) {
		return false
	}
	for ; n != nil; n = n.Parent {
		for _, a := range n.Attr {
			if a.Key == "hidden" || a.Key == "class" && a.Val == "recorded" {
				return false
			}
		}
		if n.Data == "noscript" {
			return false
		}
	}
	return true
}
