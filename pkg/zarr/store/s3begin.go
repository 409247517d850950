package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
)

// Errors of [S3Store.Begin].
var (
	ErrOccupied = errors.New("is taken")             // the place holds a node, or an unfinished one of another run; it may be replaced
	ErrForeign  = errors.New("must not be replaced") // the place holds something other than Zarr, or is a whole bucket
)

// Begin claims the store's prefix for a new node. If there is a node, complete or not, it returns ErrOccupied, unless
// replace is set: then a complete node stays until the new one is complete, and an incomplete one is removed now.
// Anything else at the prefix, and a bucket as a whole, gives ErrForeign. foreign functions are asked about a complete
// node now, and before it is replaced: what they find gives ErrForeign. owner names the writer in the messages that
// other runs get meanwhile.
//
// The caller ends the upload with [S3Upload.Commit] or [S3Upload.Abort]. When ctx ends, its transfers end
// too.
func (s *S3Store) Begin(ctx context.Context, owner string, replace bool, foreign ...Foreign) (*S3Upload, error) {
	if s.prefix == "" {
		return nil, fmt.Errorf("%s: a bucket as a whole %w: want s3://%s/NAME", s.web.shown, ErrForeign, s.bucket)
	}
	f, err := s.look(ctx)
	switch {
	case err != nil:
		return nil, err
	case f.empty:
	case f.mark == nil && !f.zarr:
		return nil, fmt.Errorf("%s: what is there is no Zarr and %w", s.web.shown, ErrForeign)
	case f.mark != nil && !replace:
		return nil, s.occupied(f.mark)
	case !replace:
		return nil, fmt.Errorf("%s: %w: there is a Zarr hierarchy", s.web.shown, ErrOccupied)
	case f.node && (f.mark == nil || !f.mark.Replacing):
		if err := s.mayReplace(ctx, foreign); err != nil {
			return nil, err
		}
	}
	u := newUpload(ctx, s, newMark(owner))
	u.foreign = foreign
	err = u.claim(&f)
	switch {
	case err == nil:
		return u, nil
	case errors.Is(err, ErrOccupied): // another was faster
		u.cancel()
		return nil, err
	}
	if e := u.Abort(ctx); e != nil { // the mark may be there
		err = fmt.Errorf("%w (and the mark that the run left at %s: %w)", err, s.Location(markName), e)
	}
	return nil, err
}

// Foreign describes something in a store that must not be deleted, such as "notes.txt, which is not part of the image
// there"; "" if there is nothing.
type Foreign func(ctx context.Context, s *S3Store) (what string, err error)

// mayReplace returns an error if a complete node holds something that must not be deleted.
func (s *S3Store) mayReplace(ctx context.Context, foreign []Foreign) error {
	for _, look := range foreign {
		what, err := look(ctx, s)
		if err != nil {
			return err
		}
		if what != "" {
			return fmt.Errorf("%s: holds %s, and %w", s.web.shown, what, ErrForeign)
		}
	}
	return nil
}

// claim writes the mark and removes leftovers of dead runs.
func (u *S3Upload) claim(f *found) error {
	ctx, s := u.ctx, u.place
	if f.mark != nil && f.mark.Replacing { // its node is whole: it is what ours replaces
		theirs := u.mark
		theirs.Beside, theirs.Replacing = f.mark.Beside, true
		if err := s.putMark(ctx, theirs); err != nil {
			return err
		}
		if err := s.finish(ctx, theirs); err != nil {
			return err
		}
		*f = found{zarr: true, node: true}
	}
	if f.mark == nil {
		if f.zarr {
			u.aside()
		}
		return s.claim(ctx, u.mark)
	}
	if f.node {
		u.aside()
	}
	if err := s.putMark(ctx, u.mark); err != nil {
		return err
	}
	s.giveUpParts(ctx)
	if f.node {
		return s.remove(ctx, besideName, nil)
	}
	return s.clear(ctx)
}

// clear removes everything but the mark, beginning with the documents that make it a node.
func (s *S3Store) clear(ctx context.Context) error {
	if err := s.deleteObjects(ctx, s.prefix, nodeNames); err != nil {
		return err
	}
	return s.remove(ctx, "", func(key string) bool { return key == markName })
}

// Commit completes the node: when all objects have arrived, it writes the documents kept back, the one that
// readers look for first last. If there was a node before, it is replaced now; once that has begun, the end
// of ctx no longer stops it.
func (u *S3Upload) Commit(ctx context.Context) error {
	if err := u.allArrived(ctx); err != nil {
		return err
	}
	u.sent.Wait() // their goroutines have nothing left to do
	if err := u.place.owns(ctx, u.mark); err != nil {
		return err
	}
	u.mu.Lock()
	held := maps.Clone(u.held)
	u.mu.Unlock()
	for _, key := range nodeNames {
		if text, ok := held[key]; ok {
			if err := u.S3Store.Put(ctx, key, text); err != nil {
				return err
			}
		}
	}
	var err error
	if u.mark.Beside != "" {
		if err = u.place.mayReplace(ctx, u.foreign); err == nil {
			err = u.place.replace(ctx, u.mark)
		}
	} else {
		err = u.place.Delete(context.WithoutCancel(ctx), markName) // it is whole
	}
	u.committed = err == nil
	return err
}

// aside makes the upload write beside an existing node.
func (u *S3Upload) aside() {
	u.mark.Beside = besideName + strings.ToLower(u.mark.Run)
	u.S3Store = u.place.beside(u.mark.Beside)
}

// Abort removes everything written, even after Commit, and, for a while, even after ctx has ended. A node
// that was there before stays as it was. A replacement that has begun cannot be undone: Abort completes it.
func (u *S3Upload) Abort(ctx context.Context) error {
	u.cancel()
	u.sent.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	there, err := u.place.readMark(ctx)
	switch {
	case err != nil:
		return err
	case there == nil && u.committed:
		u.mark.Beside = ""
		if err := u.place.claim(ctx, u.mark); err != nil {
			return err
		}
	case there == nil || there.Run != u.mark.Run: // another run's
		if u.mark.Beside != "" {
			return u.place.remove(ctx, u.mark.Beside+"/", nil)
		}
		return nil
	case there.Replacing:
		return u.place.finish(ctx, *there)
	}
	if u.mark.Beside != "" {
		return u.place.leave(ctx)
	}
	if err := u.place.clear(ctx); err != nil {
		return err
	}
	return u.place.Delete(ctx, markName)
}
