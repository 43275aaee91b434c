//go:build e2e

package ui

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// browser opens pages in Chromium, each in a new process with a new profile.
type browser struct{ path, pictures string }

// newBrowser finds Chromium. If there is none, it skips the test, or fails it
// where tests must not be skipped.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			pictures, err := filepath.Abs("../../bin/screenshots")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(pictures, 0o755); err != nil {
				t.Fatal(err)
			}
			return &browser{path, pictures}
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("there is no browser: apt-get install chromium")
	}
	t.Skip("there is no browser: apt-get install chromium")
	return nil
}

// window is the window in which a page is opened.
type window struct {
	width, height int
	dark          bool
	wait          time.Duration // how long the page runs before its picture, by its own clock
}

// seen is what the browser made of a page.
type seen struct {
	document   string // the document in the browser, as HTML
	complaints []string
	picture    image.Image
	file       string
}

// open opens a page and stores its picture under that name.
func (b *browser) open(t *testing.T, name, url string, w window) *seen {
	t.Helper()
	s := &seen{file: filepath.Join(b.pictures, name+".png")}
	if err := os.Remove(s.file); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	scheme := "1" // light
	if w.dark {
		scheme = "0"
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := []string{url}
	if w.wait > 0 {
		args = []string{fmt.Sprintf("--virtual-time-budget=%d", w.wait.Milliseconds()), url}
	}
	cmd := b.command(ctx, t, append([]string{"--enable-logging=stderr", "--blink-settings=preferredColorScheme=" + scheme,
		fmt.Sprintf("--window-size=%d,%d", w.width, w.height), "--screenshot=" + s.file, "--dump-dom"}, args...)...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("open %s: %v\n%s", url, err, log.String())
	}
	s.document = out.String()
	for line := range strings.Lines(log.String()) {
		// These are messages on the console: violations of the policy, resources that
		// could not be loaded, and errors of scripts.
		if strings.Contains(line, "CONSOLE") {
			s.complaints = append(s.complaints, strings.TrimSpace(line))
		}
	}
	file, err := os.Open(s.file)
	if err != nil {
		t.Fatalf("%s has no picture: %v\n%s", url, err, log.String())
	}
	defer file.Close()
	if s.picture, err = png.Decode(file); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s", url, s.file)
	return s
}

// show opens a page and leaves it open until the end of the test. The context ends when the time is
// over.
func (b *browser) show(t *testing.T, atMost time.Duration, url string) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), atMost)
	cmd := b.command(ctx, t, "--remote-debugging-port=0", url)
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	return ctx
}

// command returns a browser without a window, with a new profile. It ends with
// ctx, together with the processes that it started.
func (b *browser) command(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	profile, err := os.MkdirTemp("", "weir-ui")
	if err != nil {
		t.Fatal(err)
	}
	// This does not use t.TempDir, because a browser that is killed may still
	// create a file.
	t.Cleanup(func() { _ = os.RemoveAll(profile) })
	cmd := exec.CommandContext(ctx, b.path, append([]string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
		"--user-data-dir=" + profile,
	}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// crop cuts the picture at a width, and stores it again.
func (s *seen) crop(t *testing.T, width int) {
	t.Helper()
	bounds := s.picture.Bounds()
	bounds.Max.X = bounds.Min.X + width
	narrow := image.NewRGBA(bounds)
	draw.Draw(narrow, bounds, s.picture, bounds.Min, draw.Src)
	s.picture = narrow
	s.store(t, s.file)
}

// storeSmall stores the picture with its 256 most frequent colours, which makes a small file.
func (s *seen) storeSmall(t *testing.T, path string) {
	t.Helper()
	bounds := s.picture.Bounds()
	count := map[color.Color]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[s.picture.At(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int {
		return cmp.Or(count[b]-count[a], strings.Compare(fmt.Sprint(a), fmt.Sprint(b))) // the same file each time
	})
	small := image.NewPaletted(bounds, colours[:min(len(colours), 256)])
	draw.Draw(small, bounds, s.picture, bounds.Min, draw.Src)
	s.picture = small
	s.store(t, path)
}

// store writes the picture to a file.
func (s *seen) store(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join((&png.Encoder{CompressionLevel: png.BestCompression}).Encode(file, s.picture), file.Close()); err != nil {
		t.Fatal(err)
	}
}

// brightness returns the brightness of a picture's background, from 0 to 1. It
// uses the first pixel.
func (s *seen) brightness() float64 {
	r, g, b, _ := s.picture.At(s.picture.Bounds().Min.X, s.picture.Bounds().Min.Y).RGBA()
	return float64(r+g+b) / (3 * 0xffff)
}

// has checks that the document contains all of these texts, and that the
// browser reported no problem.
func (s *seen) has(t *testing.T, want ...string) {
	t.Helper()
	for _, text := range want {
		if !strings.Contains(s.document, text) {
			t.Errorf("%s: the document does not hold %q:\n%s", s.file, text, s.document)
		}
	}
	for _, c := range s.complaints {
		t.Errorf("%s: the browser complains: %s", s.file, c)
	}
}
