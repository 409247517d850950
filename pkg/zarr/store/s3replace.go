package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"strata/pkg/work"
)

// A new node is made beside the old one, in a folder below it whose name begins with [besideName],
// and takes its place when it is whole. A bucket can rename nothing: the server copies the objects.
// So that a run may end at any request, the mark says how far it is:
//
//	Replacing is not set    the old node, if there was one, is whole; what lies beside is of no use
//	Replacing is set        the new node is whole, beside; the old one is being overwritten
//
// [S3Store.finish] does all that is left of the second from wherever the first run stopped.

// beside returns the store in a folder of s; its objects report their final locations.
func (s *S3Store) beside(folder string) *S3Store {
	web := *s.web
	web.base += folder + "/"
	b := *s
	b.web, b.prefix = &web, s.prefix+folder+"/"
	return &b
}

// probeName names an object beside that shows whether the server can copy.
const probeName = hidden + "probe"

// replace moves the complete node in the folder beside to its place.
func (s *S3Store) replace(ctx context.Context, m mark) error {
	b := s.beside(m.Beside)
	err := b.put(ctx, probeName, nil)
	if err == nil { // before the old node is touched
		err = b.copyFrom(ctx, probeName+"-copy", listed{key: b.prefix + probeName})
	}
	if err != nil {
		return fmt.Errorf("%w (an image is replaced by copies that the server makes; without them, remove the old one first)", err)
	}
	m.Replacing = true
	if err := s.putMark(ctx, m); err != nil {
		return err
	}
	return s.finish(context.WithoutCancel(ctx), m)
}

// finish replaces the old node by the one beside; the stored mark already says so.
func (s *S3Store) finish(ctx context.Context, m mark) error {
	err := s.deleteObjects(ctx, s.prefix, nodeNames) // a reader must not find a mixture
	var documents []listed
	if err == nil {
		documents, err = s.copyAll(ctx, m.Beside)
	}
	if err == nil {
		err = s.deleteOthers(ctx, m.Beside)
	}
	for _, name := range nodeNames {
		i := slices.IndexFunc(documents, func(o listed) bool { return strings.HasSuffix(o.key, "/"+name) })
		if err == nil && i >= 0 {
			err = s.copyFrom(ctx, name, documents[i])
		}
	}
	if err == nil {
		err = s.owns(ctx, m)
	}
	if err == nil { // what is beside is not needed any more
		m.Replacing = false
		err = s.putMark(ctx, m)
	}
	if err == nil {
		err = s.leave(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w (the new image is complete, in %s/%s, and the next run with --overwrite puts it into its place first)", err, s.web.shown, m.Beside)
	}
	return nil
}

// leave removes what lies beside a complete node, then the mark.
func (s *S3Store) leave(ctx context.Context) error {
	if err := s.remove(ctx, besideName, nil); err != nil {
		return err
	}
	return s.Delete(ctx, markName)
}

// owns returns an error if another run has claimed the place.
func (s *S3Store) owns(ctx context.Context, m mark) error {
	there, err := s.readMark(ctx)
	switch {
	case err != nil:
		return err
	case there == nil:
		return fmt.Errorf("%s: %w: another run has removed what was written there", s.web.shown, ErrOccupied)
	case there.Run != m.Run:
		return fmt.Errorf("%s: %w: %s took it over", s.web.shown, ErrOccupied, foreign(there.Writer))
	}
	return nil
}

// copyAll copies the objects of the folder beside, except for the node's own documents, which it returns.
func (s *S3Store) copyAll(ctx context.Context, folder string) (documents []listed, err error) {
	from := s.prefix + folder + "/"
	g, gctx := work.WithContext(ctx)
	g.SetLimit(s.Requests())
	for entries, err := range s.pages(gctx, from, "", 0) {
		if err != nil {
			return nil, errors.Join(err, g.Wait())
		}
		for _, o := range entries {
			key := strings.TrimPrefix(o.key, from)
			switch {
			case slices.Contains(nodeNames, key):
				documents = append(documents, o)
			case !strings.HasPrefix(key, hidden):
				g.Go(func() error { return s.copyFrom(gctx, key, o) })
			}
		}
	}
	return documents, g.Wait()
}

// deleteOthers deletes the objects that the node beside does not have. Both listings are in name order.
func (s *S3Store) deleteOthers(ctx context.Context, folder string) error {
	next, stop := iter.Pull2(s.names(ctx, s.prefix+folder+"/"))
	defer stop()
	var others []string
	kept, err, more := next()
	for name, e := range s.names(ctx, s.prefix) {
		if e != nil {
			return e
		}
		if strings.HasPrefix(name, hidden) {
			continue
		}
		for more && err == nil && kept < name {
			kept, err, more = next()
		}
		if err != nil {
			return err
		}
		if more && kept == name {
			continue
		}
		if others = append(others, name); len(others) == deleteAtOnce {
			if err := s.deleteObjects(ctx, s.prefix, others); err != nil {
				return err
			}
			others = others[:0]
		}
	}
	return s.deleteObjects(ctx, s.prefix, others)
}

// names lists the names of the objects below a prefix, without the prefix and in order.
func (s *S3Store) names(ctx context.Context, below string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		last := ""
		for entries, err := range s.pages(ctx, below, "", 0) {
			if err != nil {
				yield("", err)
				return
			}
			for _, o := range entries {
				name := strings.TrimPrefix(o.key, below)
				if name < last {
					yield("", fmt.Errorf("%s: the server lists %s after %s: an image in a bucket without order cannot be replaced; remove the old one first",
						s.web.shown, foreign(name), foreign(last)))
					return
				}
				if last = name; !yield(name, nil) {
					return
				}
			}
		}
	}
}
