package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"sync/atomic"
	"syscall"
	"time"

	"strata/tests/s3emu"
)

// bucket is a server that programs write to.
type bucket struct {
	*fixtures
	server *s3emu.Server
	tries  atomic.Int64
}

// kill ends an upload that replaces an image at a random moment. Afterwards the old or the new image must be
// readable or, after a kill that left no time to clean up, be rejected as unfinished; the next run must succeed in
// any case.
func (b *bucket) kill(ctx context.Context, dir string, r *rand.Rand) (string, error) {
	var env []string
	for name, value := range b.server.Environment() {
		env = append(env, name+"="+value)
	}
	run := func(args ...string) (ending, error) {
		return program{bin: b.bin, dir: dir, env: env, args: append(args, "-q")}.run(ctx)
	}
	at := fmt.Sprintf("s3://%s/try-%d/%s", s3emu.Bucket, b.tries.Add(1), path.Base(b.old))
	if e, err := run("zarr-tool", "reencode", b.old, at); err != nil || e.code != 0 {
		return "", fmt.Errorf("upload of the old image: %v (%v)", e, err)
	}
	s := b.steps[r.IntN(3)]
	reference := path.Join(b.dir, "reference-"+s.out)
	signal := deaths[r.IntN(len(deaths))]
	p := program{bin: b.bin, dir: dir, env: env, args: s.command(at, "-f"), signal: signal, after: moment(r, 3*s.seconds)}
	name := fmt.Sprintf("%s, %v after %v", s.args[0], signal, p.after.Round(time.Millisecond))
	e, err := p.run(ctx)
	if err != nil {
		return "", err
	}
	if e.hung || e.crashed() {
		return "", fmt.Errorf("%s: %v", name, e)
	}
	what := "unfinished"
	for label, image := range map[string]string{"as before": b.old, "new": reference} {
		if e, err := run("zarr-tool", "validate", at, image); err != nil {
			return "", err
		} else if e.code == 0 {
			what = label
		}
	}
	if what == "unfinished" && signal != syscall.SIGKILL {
		return "", fmt.Errorf("%s: neither the old image nor the new one", name)
	}
	if e, err := run(s.command(at, "-f")...); err != nil || e.code != 0 {
		return "", fmt.Errorf("%s: the next run: %v (%v)", name, e, err)
	}
	if e, err := run("zarr-tool", "validate", at, reference); err != nil || e.code != 0 {
		return "", fmt.Errorf("%s: the next run made something else: %v (%v)", name, e, err)
	}
	return what, nil
}
