// Command clients measures the S3 client of pkg/zarr/store beside minio-go, on the server of tests/s3emu: both do the
// same work in turn. It also links strata with minio-go, to compare size and start-up. It writes the table of
// docs/dependencies.md:
//
//	go run ./tests/s3emu/clients -page docs/dependencies.md
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/sync/errgroup"

	"strata/pkg/zarr/store"
	"strata/tests/regions"
	"strata/tests/s3emu"
)

const (
	objects  = 64      // of a job
	size     = 1 << 20 // bytes of an object
	piece    = 64 << 10
	inFlight = 16 // requests
)

func main() {
	rounds := flag.Int("rounds", 20, "pairs of measurements; the median counts")
	page := flag.String("page", "", "page whose table to replace; \"\": print it")
	flag.Parse()
	if err := run(context.Background(), *rounds, *page); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

// job is one kind of work, for object or piece k.
type job struct {
	name         string
	ours, theirs func(ctx context.Context, k int) error
}

func run(ctx context.Context, rounds int, page string) (err error) {
	server, stop, err := s3emu.Run("a-key", "a-secret")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for name, value := range server.Environment() {
		os.Setenv(name, value)
	}
	list, err := jobs(ctx, server)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("| | strata s | minio-go s | ratio (range) |\n|---|---:|---:|---:|\n")
	for _, j := range list {
		row, err := j.measure(ctx, rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		b.WriteString(row)
	}
	linked, err := link(ctx)
	if err != nil {
		return err
	}
	table := fmt.Sprintf("\n%s\n%s\n", b.String(), linked)
	if page == "" {
		_, err := os.Stdout.WriteString(table)
		return err
	}
	return regions.Write(page, page, map[string]string{"s3": table})
}

// jobs returns what both clients do, once the bucket has its objects.
func jobs(ctx context.Context, server *s3emu.Server) ([]job, error) {
	s, err := store.S3(ctx, "s3://"+s3emu.Bucket+"/x")
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(server.URL)
	if err != nil {
		return nil, err
	}
	m, err := minio.New(at.Host, &minio.Options{Creds: credentials.NewStaticV4(server.Key, server.Secret, ""), Region: "us-east-1",
		Transport: &http.Transport{MaxIdleConnsPerHost: inFlight}})
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(data) // never fails
	key := func(k int) string { return fmt.Sprintf("c/%d", k) }
	for k := range objects {
		if err := s.Put(ctx, key(k), data); err != nil {
			return nil, err
		}
	}
	check := func(got []byte, want []byte, err error) error {
		if err == nil && !bytes.Equal(got, want) {
			err = errors.New("other bytes than were written")
		}
		return err
	}
	ranged, err := s.Open(ctx, key(0))
	if err != nil {
		return nil, err
	}
	return []job{
		{fmt.Sprintf("read %d objects of 1 MiB", objects), func(ctx context.Context, k int) error {
			b, err := s.Get(ctx, key(k), make([]byte, 0, size), size)
			return check(b, data, err)
		}, func(ctx context.Context, k int) error {
			o, err := m.GetObject(ctx, s3emu.Bucket, "x/"+key(k), minio.GetObjectOptions{})
			if err != nil {
				return err
			}
			defer o.Close()
			b := make([]byte, size)
			_, err = io.ReadFull(o, b)
			return check(b, data, err)
		}},
		{fmt.Sprintf("read %d ranges of 64 KiB of an object", objects), func(ctx context.Context, k int) error {
			off := k % (size / piece) * piece
			b := make([]byte, piece)
			_, err := ranged.ReadAt(ctx, b, int64(off))
			return check(b, data[off:off+piece], err)
		}, func(ctx context.Context, k int) error {
			off := k % (size / piece) * piece
			var o minio.GetObjectOptions
			if err := o.SetRange(int64(off), int64(off+piece-1)); err != nil {
				return err
			}
			r, err := m.GetObject(ctx, s3emu.Bucket, "x/"+key(0), o)
			if err != nil {
				return err
			}
			defer r.Close()
			b := make([]byte, piece)
			_, err = io.ReadFull(r, b)
			return check(b, data[off:off+piece], err)
		}},
		{fmt.Sprintf("write %d objects of 1 MiB", objects), func(ctx context.Context, k int) error {
			return s.Put(ctx, key(k), data)
		}, func(ctx context.Context, k int) error {
			_, err := m.PutObject(ctx, s3emu.Bucket, "x/"+key(k), bytes.NewReader(data), size, minio.PutObjectOptions{})
			return err
		}},
	}, nil
}

// measure returns the row of a job.
func (j *job) measure(ctx context.Context, rounds int) (string, error) {
	var ours, theirs, ratios []float64
	for range rounds + 1 { // the first round warms both up
		var took [2]float64
		for i, do := range []func(ctx context.Context, k int) error{j.ours, j.theirs} {
			start := time.Now()
			g, gctx := errgroup.WithContext(ctx)
			g.SetLimit(inFlight)
			for k := range objects {
				g.Go(func() error { return do(gctx, k) })
			}
			if err := g.Wait(); err != nil {
				return "", err
			}
			took[i] = time.Since(start).Seconds()
		}
		ours, theirs, ratios = append(ours, took[0]), append(theirs, took[1]), append(ratios, took[1]/took[0])
	}
	ours, theirs, ratios = ours[1:], theirs[1:], ratios[1:]
	slices.Sort(ratios)
	return fmt.Sprintf("| %s | %.3g | %.3g | %.2f (%.2f–%.2f) |\n", j.name, median(ours), median(theirs), median(ratios), ratios[0], ratios[len(ratios)-1]), nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// link links strata as it is and with minio-go, and says in a sentence what that costs.
func link(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "clients")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	root, err := filepath.Abs(".")
	if err != nil {
		return "", err
	}
	extra := filepath.Join(dir, "minio.go")
	if err := os.WriteFile(extra, []byte("package main\n\nimport _ \"github.com/minio/minio-go/v7\"\n"), 0o666); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "cmd", "strata", "minio.go"): extra}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o666); err != nil {
		return "", err
	}
	var bytes [2]int64
	var start [2]float64
	for i, args := range [][]string{nil, {"-overlay", filepath.Join(dir, "overlay.json")}} {
		out := filepath.Join(dir, "strata"+strconv.Itoa(i))
		build := exec.CommandContext(ctx, "go", append(append([]string{"build", "-ldflags", "-s -w", "-o", out}, args...), "./cmd/strata")...)
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return "", err
		}
		info, err := os.Stat(out)
		if err != nil {
			return "", err
		}
		bytes[i] = info.Size()
		if start[i], err = initialised(ctx, out); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("Linked with minio-go, strata has %.1f MB in place of %.1f MB, and its packages are initialised in %.2f ms in place of %.2f ms.",
		float64(bytes[1])/1e6, float64(bytes[0])/1e6, start[1], start[0]), nil
}

// clock matches the time of a package in Go's trace of initialisation.
var clock = regexp.MustCompile(`(?m)^init \S+ @\S+ ms, ([0-9.]+) ms clock`)

// initialised returns the milliseconds in which the packages of a program are initialised: the median of 20 runs.
func initialised(ctx context.Context, program string) (float64, error) {
	var all []float64
	for range 20 {
		c := exec.CommandContext(ctx, program, "--version")
		c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		text, err := c.CombinedOutput()
		if err != nil {
			return 0, err
		}
		sum := 0.0
		for _, m := range clock.FindAllSubmatch(text, -1) {
			ms, err := strconv.ParseFloat(string(m[1]), 64)
			if err != nil {
				return 0, err
			}
			sum += ms
		}
		all = append(all, sum)
	}
	return median(all), nil
}
