// Package zarrout starts outputs that are Zarr hierarchies: in folders, and in buckets.
package zarrout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/replace"
	"strata/pkg/runrecord"
	"strata/pkg/zarr/store"
)

// Output is an output that is a Zarr hierarchy.
type Output struct {
	Store store.Writer
	path  string
	alone bool     // it has files only that are named
	with  []string // paths of its files
}

// With says that of the files which the run writes beside its images only these belong to this one. Without it all of
// them do.
func (o *Output) With(files ...string) { o.alone, o.with = true, files }

// Path is where it will lie, as the user named it.
func (o *Output) Path() string { return o.path }

// Create starts an output: a folder, or at an address
// s3://bucket/path. It is complete, or not there, when the command's Run returned.
func Create(ctx context.Context, r *cli.Run, path string) (*Output, error) {
	if !cli.InBucket(path) {
		out, err := r.Output(ctx, path)
		if err != nil {
			return nil, err
		}
		return tied(r, &Output{Store: store.Folder(out.Work()), path: path}), nil
	}
	var upload *store.S3Upload
	err := r.Remote(path, func() (atomic.Remote, error) {
		bucket, err := store.S3(ctx, path, store.Settings(r.Options.HTTP), store.Queue(r.TakeMem(store.QueueBytes)))
		switch {
		case errors.Is(err, store.ErrUnavailable), err != nil && ctx.Err() != nil: // where the bucket is was not to be found out
			return nil, fmt.Errorf("output %w", err)
		case err != nil:
			return nil, cli.Usage("output %w", err)
		}
		upload, err = bucket.Begin(ctx, writer(), r.Options.Overwrite, func(ctx context.Context, s *store.S3Store) (string, error) {
			return replace.Keys(ctx, s, s.Keys(ctx))
		})
		switch {
		case errors.Is(err, store.ErrOccupied) && !r.Options.Overwrite:
			return nil, cli.Usage("output %w; give --overwrite (-f) to replace it", err)
		case errors.Is(err, store.ErrOccupied), errors.Is(err, store.ErrForeign):
			return nil, cli.Usage("output %w", err)
		case err != nil:
			return nil, fmt.Errorf("output %w", err)
		}
		return inBucket{ctx, upload}, nil
	})
	if err != nil {
		return nil, err
	}
	return tied(r, &Output{Store: upload, path: path}), nil
}

// tied completes the output at the end of the run.
func tied(r *cli.Run, o *Output) *Output {
	r.Together(func(ctx context.Context, files []runrecord.File) error {
		p := r.Provenance(o.path)
		for _, f := range files {
			if !o.alone || slices.Contains(o.with, f.Path) {
				p.Files = append(p.Files, f.Digest)
			}
		}
		slices.Sort(p.Files)
		if err := complete(ctx, o.Store, p, o.path, r.Options.Mem); err != nil {
			return fmt.Errorf("output %w", err)
		}
		return nil
	})
	return o
}

// writer is this process, for others that want to write to the same place.
func writer() string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	return fmt.Sprintf("process %d on %s (since %s)", os.Getpid(), host, time.Now().UTC().Format("2006-01-02 15:04 MST"))
}

// inBucket ends an upload with the run.
type inBucket struct {
	ctx    context.Context
	upload *store.S3Upload
}

// Commit makes the node visible.
func (b inBucket) Commit() error { return b.upload.Commit(b.ctx) }

// Abort removes what was written, also of a run that was interrupted.
func (b inBucket) Abort() error { return b.upload.Abort(b.ctx) }
