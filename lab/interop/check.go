package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// checker reads what the peers wrote.
type checker struct {
	location string
	st       store.Store
	web      bool // on a web server, which cannot list
}

func check(ctx context.Context, location string) error {
	st, _, err := store.OpenURL(ctx, location)
	if err != nil {
		return err
	}
	defer st.Close()
	c := &checker{location: location, st: st, web: strings.HasPrefix(location, "http")}
	b, err := st.Get(ctx, "manifest.json", nil, -1)
	if err != nil {
		return err
	}
	var list manifest
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("%s: %w", st.Location("manifest.json"), err)
	}
	t := newTally()
	where := "read by strata"
	if c.web {
		where += " over HTTP"
	}
	line := func(group, writer string) string { return fmt.Sprintf("%s, written by %s, %s", group, writer, where) }
	for i, a := range list.Arrays {
		if c.web && i%8 != 0 && !strings.HasSuffix(a.Path, ".zip") {
			continue // the requests are the same for most
		}
		t.add(line(a.Group, a.Writer), a.Path, c.array(ctx, a))
	}
	for _, g := range list.Groups {
		if !c.web || g.Consolidated {
			t.add(line(g.Group, g.Writer), g.Path, c.group(ctx, g))
		}
	}
	for _, i := range list.Images {
		t.add(line(i.Group, i.Writer), i.Path, c.image(ctx, i))
	}
	return t.report()
}

// open opens the store of a case and returns the key of its node.
func (c *checker) open(ctx context.Context, path string) (store.Store, string, error) {
	return store.OpenURL(ctx, strings.TrimSuffix(c.location, "/")+"/"+path)
}

func (c *checker) array(ctx context.Context, want array) error {
	st, key, err := c.open(ctx, want.Path)
	if err != nil {
		return err
	}
	defer st.Close()
	a, err := zarr.OpenArray(ctx, st, key, zarr.Workers(2))
	if err != nil {
		return err
	}
	defer a.Close()
	values, err := c.st.Get(ctx, want.Values, nil, -1)
	if err != nil {
		return err
	}
	if err := compare(ctx, a, want.DType, want.Shape, values); err != nil {
		return err
	}
	if a.Format() != want.Format {
		return fmt.Errorf("format %d, want %d", a.Format(), want.Format)
	}
	if err := sameAttributes(a.Attributes(), want.Attributes); err != nil {
		return err
	}
	var names []string
	for _, n := range want.DimensionNames {
		if n == nil {
			names = append(names, "")
		} else {
			names = append(names, *n)
		}
	}
	if got := a.DimensionNames(); !slices.Equal(got, names) {
		return fmt.Errorf("dimension names %q, want %q", got, names)
	}
	return nil
}

// compare reads an array in whole and in part, and compares it with the expected values.
func compare(ctx context.Context, a *zarr.Array, dtype string, shape []int, want []byte) error {
	if a.DType().String() != dtype || !slices.Equal(a.Shape(), shape) {
		return fmt.Errorf("%v of %v, want %s of %v", a.DType(), a.Shape(), dtype, shape)
	}
	got := make([]byte, len(want))
	if err := a.Read(ctx, a.Bounds(), got); err != nil {
		return err
	}
	size := a.DType().Size()
	for i := range len(got) / size {
		if g, w := got[i*size:(i+1)*size], want[i*size:(i+1)*size]; !bytes.Equal(g, w) {
			return fmt.Errorf("element %d is %x, want %x", i, g, w)
		}
	}
	part := zarr.Region{Start: make([]int, len(shape)), Shape: make([]int, len(shape))}
	n := size
	for d, s := range shape {
		part.Start[d] = s / 4
		part.Shape[d] = max(s-s/5-s/4, 0)
		n *= part.Shape[d]
	}
	got = make([]byte, n)
	if err := a.With(zarr.Workers(1)).Read(ctx, part, got); err != nil {
		return fmt.Errorf("%v: %w", part, err)
	}
	if !bytes.Equal(got, box(want, size, shape, part.Start, part.Shape, nil)) {
		return fmt.Errorf("%v has other values", part)
	}
	return nil
}

// sameAttributes compares attributes as JSON values.
func sameAttributes(got map[string]json.RawMessage, want map[string]any) error {
	values := map[string]any{}
	for k, raw := range got {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			return fmt.Errorf("attribute %q: %w", k, err)
		}
		values[k] = v
	}
	if len(values)+len(want) > 0 && !reflect.DeepEqual(values, want) {
		return fmt.Errorf("attributes %v, want %v", values, want)
	}
	return nil
}

func (c *checker) group(ctx context.Context, want group) error {
	st, key, err := c.open(ctx, want.Path)
	if err != nil {
		return err
	}
	defer st.Close()
	g, err := zarr.OpenGroup(ctx, st, key)
	if err != nil {
		return err
	}
	if g.Consolidated() != want.Consolidated || g.Format() != want.Format {
		return fmt.Errorf("consolidated = %v, format %d; want %v, %d", g.Consolidated(), g.Format(), want.Consolidated, want.Format)
	}
	if err := sameAttributes(g.Attributes(), want.Attributes); err != nil {
		return err
	}
	var members []string
	if err := walk(ctx, g, "", func(path string, n zarr.Node) error {
		members = append(members, path)
		if err := sameAttributes(n.Attributes(), map[string]any{"me": path}); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if a, ok := n.(*zarr.Array); ok {
			defer a.Close()
			if err := compare(ctx, a, "uint8", []int{3}, []byte{1, 2, 3}); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	slices.Sort(members)
	slices.Sort(want.Members)
	if !slices.Equal(members, want.Members) {
		return fmt.Errorf("members %v, want %v", members, want.Members)
	}
	return nil
}

// walk visits all nodes below g.
func walk(ctx context.Context, g *zarr.Group, prefix string, visit func(path string, n zarr.Node) error) error {
	names, err := g.Children(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		n, err := g.Open(ctx, name)
		if err != nil {
			return err
		}
		path := store.Join(prefix, name)
		if err := visit(path, n); err != nil {
			return err
		}
		if sub, ok := n.(*zarr.Group); ok {
			if err := walk(ctx, sub, path, visit); err != nil {
				return err
			}
		}
	}
	return nil
}
