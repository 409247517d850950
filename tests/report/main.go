// Command report opens a quality report in headless Chromium, without network access, and checks what only a
// browser shows: nothing is loaded or logged, every picture is displayed and can be enlarged, text has enough
// contrast in light and dark mode, and the page prints.
//
//	go run ./tests/report PAGE.html [SCREENSHOT.png]
//
// The screenshots, of a light and a dark window, show the top of the page.
package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"strata/tests/browser"
)

func main() {
	if len(os.Args) < 2 || len(os.Args) > 3 {
		fmt.Fprintln(os.Stderr, "usage: report PAGE.html [SCREENSHOT.png]")
		os.Exit(2)
	}
	shot := ""
	if len(os.Args) == 3 {
		shot = os.Args[2]
	}
	if err := check(os.Args[1], shot); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// findings is a script that returns problems of the page.
const findings = `(() => {
  const bad = [];
  const images = [...document.images];
  for (const i of images) {
    if (!i.complete || i.naturalWidth === 0) bad.push('picture does not show: ' + i.alt);
    if (!i.alt) bad.push('picture without a text: ' + i.src.slice(0, 40));
    if (!i.src.startsWith('data:')) bad.push('picture from elsewhere: ' + i.src);
  }
  for (const t of document.querySelectorAll('table')) {
    if (!t.caption) bad.push('table without a caption');
    if (!t.querySelector('caption a[download$=".csv"]')) bad.push('table without a CSV file: ' + t.caption?.textContent);
    if ([...t.querySelectorAll('th')].some(h => !h.scope)) bad.push('table head without a scope');
    if (t.scrollWidth > t.parentElement.clientWidth + 1 && getComputedStyle(t.parentElement).overflowX !== 'auto') bad.push('table sticks out');
  }
  for (const s of document.querySelectorAll('svg[role=img]')) if (!s.getAttribute('aria-label')) bad.push('chart without a label');
  for (const a of document.querySelectorAll('a[href]')) {
    const h = a.getAttribute('href');
    if (a.download) { if (!h.startsWith('data:text/csv;base64,')) bad.push('download from elsewhere: ' + h.slice(0, 40)); continue; }
    if (!h.startsWith('#') || !document.getElementById(h.slice(1))) bad.push('link to nowhere: ' + h);
  }
  if (document.scripts.length) bad.push('there are scripts');
  const verdict = document.querySelector('main > .verdict strong');
  if (!verdict || !['Good', 'Check', 'Failed'].includes(verdict.textContent)) bad.push('no verdict on top');
  for (const n of document.querySelectorAll('.notices > .warning, .notices > .error')) if (!n.querySelector('.do')) bad.push('nothing to do about: ' + n.textContent.slice(0, 60));
  if (/\d\s*mm\b/.test(document.body.innerText)) bad.push('millimetres: ' + document.body.innerText.match(/.{20}\d\s*mm\b/)?.[0]);
  if (document.querySelectorAll('h1').length !== 1) bad.push('want one h1');
  if (document.documentElement.scrollWidth > innerWidth + 1) bad.push('page is wider than the window: ' + document.documentElement.scrollWidth);
  return {bad, images: images.length, charts: document.querySelectorAll('svg[role=img]').length, tables: document.querySelectorAll('table').length};
})()`

// contrast is a script that finds text with too little contrast: a ratio under 4.5 (WCAG 2.2, AA).
const contrast = `(() => {
  const rgb = c => { const m = c.match(/[\d.]+/g).map(Number); return m.length > 3 && m[3] === 0 ? null : m.slice(0, 3); };
  const lum = c => c.map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c) return c; } return [255, 255, 255]; };
  const bad = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || e.closest('title')) continue;
    const s = getComputedStyle(e);
    const a = lum(rgb(e instanceof SVGElement ? s.fill : s.color)), b = lum(ground(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.add(e.tagName + '.' + (e.className.baseVal ?? e.className) + ' ' + ratio.toFixed(2) + ': ' + walk.currentNode.data.trim().slice(0, 30));
  }
  return [...bad];
})()`

// zoom is a script that enlarges the first picture and reports whether it fills the window, and whether it is
// small again afterwards.
const zoom = `(() => {
  const box = document.querySelector('.zoom input');
  if (!box) return true;
  const img = box.nextElementSibling, before = img.getBoundingClientRect().width;
  box.click();
  const r = img.getBoundingClientRect();
  const large = Math.abs(r.width - innerWidth) < 20 && Math.abs(r.height - innerHeight) < 20;
  box.click();
  return large && img.getBoundingClientRect().width === before;
})()`

func check(page, shot string) (err error) {
	path, err := filepath.Abs(page)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	b, err := browser.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Stop()) }()
	address := (&url.URL{Scheme: "file", Path: path}).String()
	if err := b.Open(address); err != nil {
		return err
	}
	var problems []string
	found, err := atWidths(b, &problems)
	if err != nil {
		return err
	}
	if err := inSchemes(b, shot, &problems); err != nil {
		return err
	}
	if err := saved(b, &problems); err != nil {
		return err
	}
	if err := zoomedAndPrinted(b, &problems); err != nil {
		return err
	}
	problems = append(problems, b.Noise(address)...)
	if len(problems) > 0 {
		return fmt.Errorf("%s:\n  %s", page, strings.Join(problems, "\n  "))
	}
	fmt.Printf("%s: %d pictures, %d charts, %d tables; nothing loaded, nothing logged\n", page, found.Images, found.Charts, found.Tables)
	return nil
}

// content counts what the page shows, and lists what is wrong with it.
type content struct {
	Bad                    []string
	Images, Charts, Tables int
}

// atWidths looks for faults of the page in a wide and in a narrow window. It returns the content in the latter.
func atWidths(b *browser.Browser, problems *[]string) (found content, err error) {
	for _, width := range []int{1180, 420} {
		if err := b.Window(width, 900); err != nil {
			return found, err
		}
		if err := b.Eval(findings, &found); err != nil {
			return found, err
		}
		for _, f := range found.Bad {
			*problems = append(*problems, fmt.Sprintf("%d px wide: %s", width, f))
		}
	}
	return found, nil
}

// inSchemes tests whether the page can be read on dark and on light ground, and takes a picture of each unless shot is
// empty.
func inSchemes(b *browser.Browser, shot string, problems *[]string) error {
	if err := b.Window(1180, 1120); err != nil {
		return err
	}
	for _, scheme := range []string{"dark", "light"} {
		media := []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}
		if err := b.Call("Emulation.setEmulatedMedia", map[string]any{"features": media}, nil); err != nil {
			return err
		}
		var low []string
		if err := b.Eval(contrast, &low); err != nil {
			return err
		}
		for _, l := range low {
			*problems = append(*problems, scheme+": hard to read: "+l)
		}
		if shot != "" {
			name := shot
			if scheme == "dark" {
				name = strings.TrimSuffix(shot, ".png") + "-dark.png"
			}
			if err := b.Screenshot(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// zoomedAndPrinted tests the enlarged picture and the page on paper.
func zoomedAndPrinted(b *browser.Browser, problems *[]string) error {
	ok := false
	if err := b.Eval(zoom, &ok); err != nil {
		return err
	}
	if !ok {
		*problems = append(*problems, "a picture that is selected does not fill the window")
	}
	var pdf struct{ Data []byte }
	if err := b.Call("Page.printToPDF", map[string]any{"printBackground": true}, &pdf); err != nil {
		return err
	}
	if len(pdf.Data) < 5000 {
		*problems = append(*problems, fmt.Sprintf("it prints to %d bytes", len(pdf.Data)))
	}
	return nil
}

// saved selects the first table's link and reads what Chromium saves.
func saved(b *browser.Browser, problems *[]string) error {
	var want struct{ Name, Head string }
	if err := b.Eval(`(() => {
  const a = document.querySelector('caption a[download]');
  if (!a) return {};
  for (const d of document.querySelectorAll('details')) d.open = true;
  return {name: a.download, head: [...a.closest('table').querySelectorAll('thead th')][0].textContent};
})()`, &want); err != nil || want.Name == "" {
		return err
	}
	dir, err := os.MkdirTemp("", "report-saved-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := b.Call("Page.setDownloadBehavior", map[string]any{"behavior": "allow", "downloadPath": dir}, nil); err != nil {
		return err
	}
	var clicked bool
	if err := b.Eval(`(document.querySelector('caption a[download]').click(), true)`, &clicked); err != nil {
		return err
	}
	for range 200 {
		text, err := os.ReadFile(filepath.Join(dir, want.Name))
		if err == nil {
			if !strings.HasPrefix(string(text), "\ufeff"+want.Head) {
				*problems = append(*problems, fmt.Sprintf("%s begins with %.60q, want %q", want.Name, text, want.Head))
			}
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	*problems = append(*problems, want.Name+": is not saved when its link is selected")
	return nil
}
