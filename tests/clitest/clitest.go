// Package clitest runs the testscripts (testdata/*.txtar) of a binary against
// its real main:
//
//	func TestMain(m *testing.M) { clitest.Main(m, map[string]func(){"aip": clitest.Of(Command)}) }
//	func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
//	func TestCommand(t *testing.T) { clitest.Check(t, Command()) }
//
// In scripts every binary is a command; beside testscript's own there are
//
//	exitcode N CMD ARG...       runs a command, asserts its exact exit code
//	interrupt SIG N TEXT CMD…   starts a command, sends it the signal (INT, TERM, KILL, HUP, QUIT; "INT,INT"
//	                            sends two) once TEXT stands on its standard error, asserts its exit
//	                            code; a command that the signal itself ended has 128 + its number
//	[!] jsonfield FILE PATH V   field of a JSON file ("inputs.0.dtype", "warnings.length") equals V;
//	                            with ! it differs or is missing
//	jsonmatch FILE PATH REGEXP  field of a JSON file matches
//	samefield A PATH B PATH     fields of two JSON files are equal
//	[!] hidden DIR              there are hidden remains of unfinished outputs in a folder
//	[!] npyeq A B               two .npy files hold the same type, shape and bytes
//	[!] treeeq A B              two files or folders are equal byte for byte, but for what images say of the run that made them
//	[!] imageeq A B             two folders are equal but for how chunks of arrays are encoded
//	mkbytes FILE SIZE [SEED]    writes pseudo-random bytes; SIZE as in --mem
//	unpack ZIP DIR              unpacks a zip file; ZIP is relative to $ROOT, the module's root
//	tmpfs DIR SIZE              mounts a file system of that size (condition [mount]); unmounted at the end
//	readonly DIR                makes a tmpfs folder read-only
//	gpu                         from here on there is a GPU, the double of tests/cudaemu, which stages take however small
//	                            their input is; before, there is none
//	s3                          from here on there is an S3 server with a bucket named bucket
//
// and the conditions [mount] (this process may mount), [root], and [direct] (files can be read with O_DIRECT).
package clitest

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"strata/pkg/cli"
	"strata/pkg/gpu/nvml"
	"strata/pkg/runrecord"
	"strata/pkg/units"
	"strata/pkg/zarr/store"
	"strata/tests/cudaemu"
	"strata/tests/race"
	"strata/tests/repo"
	"strata/tests/s3emu"
)

// Main runs a package's tests with some binaries' mains as commands. It is
// called by TestMain and does not return.
func Main(m *testing.M, mains map[string]func()) { testscript.Main(m, mains) }

// Of is the main of a binary that is one command.
func Of(command func() *cli.Command) func() { return func() { cli.Main(command()) } }

// Program is a path under which the test's own executable is one of the binaries that
// [Main] was given, for tests that a script is too little for.
func Program(t testing.TB, name string) string {
	t.Helper()
	self, err := os.Executable()
	path := filepath.Join(t.TempDir(), name)
	if err == nil {
		err = os.Symlink(self, path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Check fails the test if a command's description has a mistake.
func Check(t *testing.T, c *cli.Command) {
	t.Helper()
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// Scripts runs all scripts of a folder, in parallel.
func Scripts(t *testing.T, dir string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir:                dir,
		RequireUniqueNames: true,
		UpdateScripts:      os.Getenv("UPDATE") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("ROOT", repo.Path())
			// Under the race detector every process would sleep a second at its end.
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			e.Setenv(cudaemu.Variable, "libcuda.so.none") // also on machines that have one
			e.Setenv(nvml.Variable, "libnvidia-ml.so.none")
			e.Setenv("STRATA_LEASE_DIR", e.WorkDir+".leases") // of its own, removed with the scripts' folder
			return nil
		},
		Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode":  exitCode,
			"interrupt": interrupt,
			"jsonfield": jsonField,
			"jsonmatch": jsonMatch,
			"samefield": sameField,
			"hidden":    hidden,
			"npyeq":     npyEqual,
			"treeeq":    treeEqual,
			"imageeq":   imageEqual,
			"mkbytes":   makeBytes,
			"unpack":    unpack,
			"tmpfs":     mountTmpfs,
			"readonly":  makeReadOnly,
			"s3": func(ts *testscript.TestScript, _ bool, _ []string) {
				server, stop, err := s3emu.Run("a-key", "a-secret")
				ts.Check(err)
				ts.Defer(func() { ts.Check(stop()) })
				for name, value := range server.Environment() {
					ts.Setenv(name, value)
				}
			},
			"gpu": func(ts *testscript.TestScript, _ bool, _ []string) {
				lib, err := cudaemu.Build()
				ts.Check(err)
				for variable, value := range cudaemu.Environment(lib) {
					if now := ts.Getenv(variable); now == "" || strings.HasSuffix(now, ".so.none") {
						ts.Setenv(variable, value)
					}
				}
			},
		},
	})
}

func condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Getuid() == 0, nil
	case "mount":
		return mayMount(), nil
	case "direct":
		return hasDirect()
	case "race":
		return race.Enabled(), nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// hasDirect reports whether the scripts' files can be read past the page cache.
func hasDirect() (bool, error) {
	dir, err := os.MkdirTemp("", "clitest")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	s := store.Folder(dir, store.ReadBy(store.ReadDirect))
	if err := s.Put(context.Background(), "x", []byte("x")); err != nil {
		return false, err
	}
	_, err = s.Get(context.Background(), "x", nil, -1)
	if errors.Is(err, store.ErrNoDirect) {
		return false, nil
	}
	return err == nil, err
}

// want fails the script unless there are that many arguments.
func want(ts *testscript.TestScript, args []string, least int, usage string) {
	if len(args) < least {
		ts.Fatalf("usage: %s", usage)
	}
}

func noNegation(ts *testscript.TestScript, neg bool, name string) {
	if neg {
		ts.Fatalf("! has no meaning for %s", name)
	}
}

func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg, "exitcode")
	want(ts, args, 2, "exitcode N CMD ARG...")
	wanted, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := codeOf(ts, ts.Exec(args[1], args[2:]...)); got != wanted {
		ts.Fatalf("exit code %d, want %d", got, wanted)
	}
}

// codeOf is the exit code behind the error of a command that was started; of
// one that a signal ended it is 128 + the signal, as a shell has it.
func codeOf(ts *testscript.TestScript, err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		if s, ok := signalOf(exit.ProcessState); ok {
			return 128 + s
		}
		return exit.ExitCode()
	}
	ts.Check(err)
	return -1
}

// field finds a value in a JSON file by a path of names, indices and "length" of a list.
func field(ts *testscript.TestScript, file, path string) (string, bool) {
	decoder := json.NewDecoder(strings.NewReader(ts.ReadFile(file)))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		ts.Fatalf("%s: %v", file, err)
	}
	for key := range strings.SplitSeq(path, ".") {
		switch parent := v.(type) {
		case map[string]any:
			child, ok := parent[key]
			if !ok {
				return "", false
			}
			v = child
		case []any:
			if key == "length" {
				v = json.Number(strconv.Itoa(len(parent)))
				continue
			}
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(parent) {
				return "", false
			}
			v = parent[i]
		default:
			return "", false
		}
	}
	if s, ok := v.(string); ok {
		return s, true
	}
	text, err := json.Marshal(v)
	ts.Check(err)
	return string(text), true
}

func jsonField(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, args, 3, "jsonfield FILE PATH VALUE")
	got, ok := field(ts, args[0], args[1])
	if !ok && !neg {
		ts.Fatalf("%s has no field %s", args[0], args[1])
	}
	if equal := ok && got == args[2]; equal == neg {
		ts.Fatalf("%s: field %s is %q", args[0], args[1], got)
	}
}

func jsonMatch(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, args, 3, "jsonmatch FILE PATH REGEXP")
	pattern, err := regexp.Compile(args[2])
	ts.Check(err)
	got, ok := field(ts, args[0], args[1])
	if !ok {
		ts.Fatalf("%s has no field %s", args[0], args[1])
	}
	if pattern.MatchString(got) == neg {
		ts.Fatalf("%s: field %s is %q", args[0], args[1], got)
	}
}

func sameField(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, args, 4, "samefield A PATH B PATH")
	var got [2]string
	for i := range got {
		var ok bool
		if got[i], ok = field(ts, args[2*i], args[2*i+1]); !ok {
			ts.Fatalf("%s has no field %s", args[2*i], args[2*i+1])
		}
	}
	if (got[0] == got[1]) == neg {
		ts.Fatalf("%s is %q, %s is %q", args[1], got[0], args[3], got[1])
	}
}

func hidden(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, args, 1, "hidden DIR")
	found, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), ".*.strata-*"))
	ts.Check(err)
	if (len(found) > 0) == neg {
		ts.Fatalf("hidden remains: %q", found)
	}
}

func npyEqual(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, args, 2, "npyeq A B")
	difference := npyDiff(ts.MkAbs(args[0]), ts.MkAbs(args[1]))
	if (difference == "") == neg {
		ts.Fatalf("%s and %s: %s", args[0], args[1], difference)
	}
}

func treeEqual(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, args, 2, "treeeq A B")
	compare(ts, neg, args, tree)
}

func imageEqual(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, args, 2, "imageeq A B")
	compare(ts, neg, args, Numbers)
}

// compare compares what read finds in two folders.
func compare(ts *testscript.TestScript, neg bool, args []string, read func(root string) (map[string][]byte, error)) {
	a, err := read(ts.MkAbs(args[0]))
	ts.Check(err)
	b, err := read(ts.MkAbs(args[1]))
	ts.Check(err)
	difference := ""
	for _, name := range slices.Sorted(keys(a, b)) {
		x, inA := a[name]
		y, inB := b[name]
		switch {
		case !inA:
			difference = name + " is only in " + args[1]
		case !inB:
			difference = name + " is only in " + args[0]
		case !bytes.Equal(x, y):
			difference = name + " differs"
		}
		if difference != "" {
			break
		}
	}
	if (difference == "") == neg {
		ts.Fatalf("%s and %s: %s", args[0], args[1], difference)
	}
}

func keys(maps ...map[string][]byte) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, m := range maps {
			for k := range m {
				if !yield(k) {
					return
				}
			}
		}
	}
}

// tree reads a file, or all below a folder; folders have nil content.
func tree(root string) (map[string][]byte, error) {
	all := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		all[name] = nil
		if d.IsDir() {
			return nil
		}
		if all[name], err = os.ReadFile(path); err == nil {
			all[name] = withoutRun(d.Name(), all[name])
		}
		return err
	})
	return all, err
}

// withoutRun returns a file without what an image says of the run that made it, which differs between command lines.
func withoutRun(name string, text []byte) []byte {
	if name != "zarr.json" && name != ".zattrs" {
		return text
	}
	var document map[string]any
	if json.Unmarshal(text, &document) != nil {
		return text
	}
	attributes := document
	if name == "zarr.json" {
		attributes, _ = document["attributes"].(map[string]any)
	}
	said, _ := attributes[runrecord.Attribute].(map[string]any)
	for _, member := range []string{"program", "version", "command", "inputs"} {
		delete(said, member)
	}
	if len(said) == 0 {
		delete(attributes, runrecord.Attribute)
	}
	short, err := json.Marshal(document)
	if err != nil {
		return text
	}
	return short
}

func makeBytes(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg, "mkbytes")
	want(ts, args, 2, "mkbytes FILE SIZE [SEED]")
	size, err := units.ParseSize(args[1])
	ts.Check(err)
	var seed [32]byte
	if len(args) > 2 {
		copy(seed[:], args[2])
	}
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = io.CopyN(f, rand.NewChaCha8(seed), size)
	ts.Check(errors.Join(err, f.Close()))
}

func unpack(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg, "unpack")
	want(ts, args, 2, "unpack ZIP DIR")
	name := args[0]
	if !filepath.IsAbs(name) {
		name = filepath.Join(ts.Getenv("ROOT"), name)
	}
	z, err := zip.OpenReader(name)
	ts.Check(err)
	defer z.Close()
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), z))
}
