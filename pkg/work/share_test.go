package work

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func TestShare(t *testing.T) {
	for _, c := range []struct{ workers, n, want int }{{1, 0, 0}, {1, 1, 1}, {0, 5, 1}, {3, 2, 2}, {4, 1000, 4}} {
		seen := make([]atomic.Int32, c.n)
		var runs atomic.Int32
		err := Share(context.Background(), c.workers, c.n, func(ctx context.Context, worker int, pieces iter.Seq[int]) error {
			runs.Add(1)
			for i := range pieces {
				seen[i].Add(1)
			}
			return ctx.Err()
		})
		if err != nil || int(runs.Load()) != c.want {
			t.Errorf("%d workers for %d pieces: %v, %d began", c.workers, c.n, err, runs.Load())
		}
		for i := range seen {
			if k := seen[i].Load(); k != 1 {
				t.Errorf("%d workers: %d was done %d times", c.workers, i, k)
			}
		}
	}
}

// An error of one worker ends the wait of another, and it is what Share returns.
func TestShareStops(t *testing.T) {
	broken := errors.New("broken")
	err := Share(context.Background(), 2, 2, func(ctx context.Context, _ int, pieces iter.Seq[int]) error {
		for i := range pieces {
			if i == 1 {
				return broken
			}
			<-ctx.Done()
		}
		return ctx.Err()
	})
	if err != broken {
		t.Error(err)
	}
	for _, workers := range []int{1, 4} {
		ctx, cancel := context.WithCancel(context.Background())
		var begun atomic.Int32
		err := Share(ctx, workers, 1<<20, func(_ context.Context, _ int, pieces iter.Seq[int]) error {
			for i := range pieces {
				if begun.Add(1); i == 7 {
					cancel()
				}
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) || begun.Load() == 1<<20 {
			t.Errorf("%d workers: %v after %d", workers, err, begun.Load())
		}
	}
	// A worker may have enough: the others go on.
	var left atomic.Bool
	var done atomic.Int32
	err = Share(context.Background(), 3, 100, func(_ context.Context, _ int, pieces iter.Seq[int]) error {
		for range pieces {
			if done.Add(1); left.CompareAndSwap(false, true) {
				return nil
			}
		}
		return nil
	})
	if err != nil || done.Load() != 100 {
		t.Errorf("%v after %d of 100", err, done.Load())
	}
	wantPanic(t, Share(context.Background(), 4, 1<<20, func(_ context.Context, _ int, pieces iter.Seq[int]) error {
		for range pieces {
			burst(nil)
		}
		return nil
	}))
}

// TestPiecesAreSharedHere fails for a loop that takes pieces of work by a counter of its own, as
// Share does.
func TestPiecesAreSharedHere(t *testing.T) {
	found := 0
	for _, top := range []string{"cmd", "pkg", "lab"} {
		err := filepath.WalkDir(filepath.Join("..", "..", top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, n := range counters(f) {
				if filepath.ToSlash(path) == "../../pkg/work/each.go" {
					found++
				} else {
					t.Errorf("%s: pieces of work are taken by a counter; share them out by work.Each or work.Share", fset.Position(n.Pos()))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found != 1 {
		t.Errorf("the counter of Share was found %d times", found)
	}
}

// counters finds what takes the next number of a counter: x.Add(1) − 1, converted or not.
func counters(f *ast.File) (found []ast.Node) {
	ast.Inspect(f, func(n ast.Node) bool {
		minus, ok := n.(*ast.BinaryExpr)
		if !ok || minus.Op != token.SUB {
			return true
		}
		call, ok := minus.X.(*ast.CallExpr)
		if ok && len(call.Args) == 1 {
			if inner, converted := call.Args[0].(*ast.CallExpr); converted {
				call = inner
			}
		}
		if ok && lastName(call.Fun) == "Add" && len(call.Args) == 1 && isOne(call.Args[0]) {
			found = append(found, n)
		}
		return true
	})
	return found
}

func isOne(e ast.Expr) bool {
	v, ok := e.(*ast.BasicLit)
	return ok && v.Value == "1"
}
