package recipe

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"strata/pkg/sif"
	"strata/pkg/sif/deb"
)

var update = flag.Bool("update", false, "write apptainer/*.def anew")

const apptainerDir = "../../../apptainer"

// The definition files for apptainer build ask for the packages of the lock, in
// those versions, leave out the same files, copy the same programs and libraries
// and say the same of themselves.
func TestApptainerRecipes(t *testing.T) {
	lock, err := Lock("amd64")
	if err != nil {
		t.Fatal(err)
	}
	for file, nvidia := range map[string]bool{"strata.def": false, "strata-gpu.def": true} {
		name := filepath.Join(apptainerDir, file)
		if *update {
			if err := os.WriteFile(name, []byte(apptainerDef(t, lock, file, nvidia)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		def, err := sif.ParseDefinition(file, f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		post := def.Script("post")
		for _, section := range []string{"environment", "runscript", "test", "help", "labels"} {
			if d := cmp.Diff(Definition().Script(section), def.Script(section)); d != "" {
				t.Errorf("%s: %%%s: %s", file, section, d)
			}
		}
		r := Recipe{Lock: lock, NVIDIA: nvidia}
		var want []string
		for _, p := range r.packages() {
			want = append(want, p.Name+"="+p.Version)
		}
		if d := cmp.Diff(want, regexp.MustCompile(`(?m)[a-z0-9.+-]+=[0-9][0-9A-Za-z.+~:-]*`).FindAllString(listOf(t, post, "packages"), -1)); d != "" {
			t.Errorf("%s: packages: %s", file, d)
		}
		want = nil
		for _, pattern := range Strip {
			want = append(want, "/"+pattern)
		}
		if d := cmp.Diff(want, strings.Fields(listOf(t, post, "strip"))); d != "" {
			t.Errorf("%s: left out: %s", file, d)
		}
		// apptainer build has the machine's own folders there: nothing of them is touched.
		post = strings.Replace(post, "mkdir -p "+strings.Join(sif.MountPoints, " ")+" ", "", 1)
		for _, dir := range hostFolders {
			if m := regexp.MustCompile(`(?m)^.*[\s"'=]` + dir + `([/\s"'*;].*)?$`).FindString(post); m != "" {
				t.Errorf("%s: %%post uses the machine's %s: %s", file, dir, strings.TrimSpace(m))
			}
		}
		links := map[string]string{}
		for _, m := range regexp.MustCompile(`ln -sfn ([^\s$]+) ([^\s$]+)\n`).FindAllStringSubmatch(post, -1) {
			links[m[2]] = m[1]
		}
		if d := cmp.Diff(Links, links); d != "" {
			t.Errorf("%s: links: %s", file, d)
		}
		if d := cmp.Diff(programs(t), strings.Fields(listOf(t, post, "programs"))); d != "" {
			t.Errorf("%s: programs: %s", file, d)
		}
		if !strings.Contains(post, "date="+lock.Date.Format("20060102T150405Z")+"\n") {
			t.Errorf("%s: not of the lock's date %v", file, lock.Date)
		}
		for _, dir := range sif.MountPoints {
			if !slices.Contains(strings.Fields(def.Script("post")), dir) {
				t.Errorf("%s: does not make %s", file, dir)
			}
		}
		lines, err := def.Files()
		if err != nil {
			t.Fatal(err)
		}
		copied := map[string]string{}
		for _, line := range lines {
			copied[line.Source] = line.Destination
		}
		wanted := map[string]string{"bin/strata": binDir + "/", "LICENSE": docDir + "/copyright", "pkg/sif/recipe/modules.txt": ModulesFile}
		maps.Copy(wanted, fromSource())
		if d := cmp.Diff(wanted, copied); d != "" {
			t.Errorf("%s: files: %s", file, d)
		}
		if !nvidia {
			continue
		}
		list, err := readWheels(bytes.NewReader(wheelsLock))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range list {
			if line := fmt.Sprintf("%s==%s --hash=sha256:%s\n", w.Name, w.Version, w.SHA256); !strings.Contains(post, line) {
				t.Errorf("%s: does not ask for %s", file, line)
			}
		}
	}
}

// programs are the names of the one program in the image.
func programs(t *testing.T) []string {
	t.Helper()
	mains, err := filepath.Glob("../../../cmd/*/main.go")
	if err != nil || len(mains) == 0 {
		t.Fatal("no programs: ", err)
	}
	var names []string
	for _, main := range mains {
		if name := filepath.Base(filepath.Dir(main)); name != "strata" {
			names = append(names, name)
		}
	}
	return names
}

// hostFolders are those of the machine that apptainer build shows to %post.
var hostFolders = []string{"/tmp", "/var/tmp", "/dev", "/proc", "/sys", "/home", "/root"}

// leftovers are files that belong to no package.
func leftovers(nvidia bool) string {
	const always = ` \
        /etc/*- /etc/.pwd.lock /etc/ca-certificates.conf /etc/dpkg/dpkg.cfg* /etc/dpkg/origins/default /etc/environment \
        /etc/fstab /etc/gshadow /etc/inputrc /etc/ld.so.cache /etc/motd /etc/pam.d /etc/profile /etc/rc?.d /etc/security /etc/shells \
        /etc/shadow /etc/ssl/certs/*.0 /etc/ssl/certs/*.pem /etc/subgid /etc/subuid /etc/systemd /usr/bin/nawk /usr/bin/pager \
        /usr/lib/apt /usr/lib/dpkg /usr/local/man /usr/sbin/rmt /var/lib/pam /var/lib/shells.state /var/lib/systemd`
	if !nvidia {
		return always
	}
	return always + ` \
        /etc/python3 /run/adduser /usr/lib/python3* /usr/local/lib/python3* /usr/share/python3 /var/lib/python`
}

// listOf is the value of a list name="…" of a script.
func listOf(t *testing.T, script, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?s)\b` + name + `="(.*?)"`).FindStringSubmatch(script)
	if m == nil {
		t.Fatalf("no list %s", name)
	}
	return m[1]
}

// apptainerDef is a definition file for apptainer build.
func apptainerDef(t *testing.T, lock *deb.Lock, file string, nvidia bool) string {
	r := Recipe{Lock: lock, NVIDIA: nvidia}
	var packages, strip, links, mounts strings.Builder
	for _, p := range r.packages() {
		fmt.Fprintf(&packages, "\n        %s=%s", p.Name, p.Version)
	}
	for _, pattern := range Strip {
		fmt.Fprintf(&strip, "\n        /%s", pattern)
	}
	for _, name := range []string{"/etc/localtime", "/usr/bin/awk", "/usr/bin/sh", "/usr/bin/which"} {
		fmt.Fprintf(&links, "    ln -sfn %s %s\n", Links[name], name)
	}
	for _, dir := range sif.MountPoints {
		mounts.WriteString(" " + dir)
	}
	image := strings.TrimSuffix(file, path.Ext(file)) + ".sif"
	text := "# The image that sif build makes, for those who have apptainer build and would rather use that.\n" +
		"# In the root of the source tree: make build && apptainer build " + image + " apptainer/" + file + "\n" +
		"# The lists are those of pkg/sif/recipe; a test of that package compares them, and writes them anew:\n" +
		"# go test ./pkg/sif/recipe -run Apptainer -update\n" +
		"Bootstrap: docker\nFrom: debian:" + lock.Suite + "-slim\n\n"
	sections := map[string]string{}
	for _, name := range []string{"labels", "environment", "runscript", "test", "help"} {
		sections[name] = "%" + name + "\n" + Definition().Script(name) + "\n"
	}
	text += sections["labels"] + "%files\n    bin/strata " + binDir + "/\n"
	places := fromSource()
	for _, name := range slices.Concat(Workflow, guides) {
		text += "    " + name + " " + places[name] + "\n"
	}
	text += "    LICENSE " + docDir + "/copyright\n    pkg/sif/recipe/modules.txt " + ModulesFile + "\n\n"
	text += `%post
    set -eu
    export DEBIAN_FRONTEND=noninteractive
    # In the image, since the temporary folders are the machine's own during a build.
    work=/strata-build
    mkdir $work
    packages="` + packages.String() + `"
    strip="` + strip.String() + `"

    # At this time Debian had exactly these versions; its snapshot archive still has them.
    snapshot=http://snapshot.debian.org/archive
    date=` + lock.Date.Format("20060102T150405Z") + `
    rm -rf /etc/apt/sources.list /etc/apt/sources.list.d
    for suite in debian/$date,` + lock.Suite + ` debian/$date,` + lock.Suite + `-updates debian-security/$date,` + lock.Suite + `-security; do
        echo "deb [check-valid-until=no] $snapshot/${suite%,*} ${suite#*,} main" >> /etc/apt/sources.list
    done
    apt-get update
    apt-get install -y --no-install-recommends --allow-downgrades --allow-change-held-packages $packages
`
	if nvidia {
		list, err := readWheels(bytes.NewReader(wheelsLock))
		if err != nil {
			t.Fatal(err)
		}
		text += `
    # NVIDIA's libraries, under NVIDIA's licences, which are kept with them.
    apt-get install -y --no-install-recommends python3-pip
    mkdir $work/wheels
    cat > $work/wheels/list.txt <<'LIST'
`
		for _, w := range list {
			text += fmt.Sprintf("%s==%s --hash=sha256:%s\n", w.Name, w.Version, w.SHA256)
		}
		text += `LIST
    python3 -m pip download --no-deps --require-hashes --only-binary=:all: --dest=$work/wheels --requirement=$work/wheels/list.txt
    python3 - <<'UNPACK'
import glob, os, re, shutil, zipfile
for wheel in glob.glob("/strata-build/wheels/*.whl"):
    docs = "/usr/share/doc/" + os.path.basename(wheel).split("-")[0].replace("_", "-")
    archive = zipfile.ZipFile(wheel)
    for name in archive.namelist():
        base = os.path.basename(name)
        if re.fullmatch(r"nvidia/[^/]+/lib[^/]*/lib[^/]*\.so[^/]*", name):
            to = "/usr/lib/x86_64-linux-gnu/" + base
        elif re.fullmatch(r"[^/]+\.dist-info/licenses[^/]*/[^/]+", name):
            to = docs + "/" + base
        else:
            continue
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with archive.open(name) as source, open(to, "wb") as target:
            shutil.copyfileobj(source, target)
        os.chmod(to, 0o644)
UNPACK
`
	}
	text += `
    # What Debian's image has besides (apt, dpkg, perl), and what only they need, goes: all files that
    # belong to a package, but to none of the list, and what packages made when they were installed.
    find /usr/share/doc -mindepth 3 -delete
    find /usr/share/doc -mindepth 2 ! -name 'copyright*' ! -path '*/nvidia-*' ! -path '*/strata/*' -delete
    for p in $packages; do dpkg-query -L "${p%%=*}"; done | sort -u > $work/keep
    dpkg-query -W -f '${binary:Package}\n' | while read -r p; do dpkg-query -L "$p"; done | sort -u > $work/all
    comm -13 $work/keep $work/all > $work/gone
    sed -E 's#^/(bin|lib|lib64|sbin)/#/usr/\1/#' $work/keep | sort -u > $work/kept
    find /etc /media /mnt /opt /run /srv /usr /var/lib -xdev -type d | sort | comm -23 - $work/kept | sort -r > $work/folders
    exec 9< $work/gone
    while read -r name <&9; do
        if [ -h "$name" ] || [ -f "$name" ]; then rm -f "$name"; fi
    done
    exec 9<&-
` + links.String() + `    programs="` + strings.Join(programs(t), " ") + `"
    for name in $programs; do ln -s strata ` + binDir + `/"$name"; done
    rm -rf $strip /var/lib/apt /var/lib/dpkg /etc/apt /etc/alternatives /usr/share/ca-certificates` + leftovers(nvidia) + `
    exec 9< $work/folders
    while read -r name <&9; do rmdir "$name" 2>&- || true; done
    exec 9<&-
    rm -rf $work /var/lock /var/run
    mkdir -p` + mounts.String() + ` /var/lock /var/run

`
	for _, name := range []string{"environment", "runscript", "test", "help"} {
		text += sections[name]
	}
	return strings.TrimRight(text, "\n") + "\n"
}

// What runs when an image is run: its help without arguments, strata for flags, else the program that is named.
func TestRunscript(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"strata", "aip"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho "+name+" \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	script := strings.Replace(Definition().Script("runscript"), "/.singularity.d/runscript.help", filepath.Join(dir, "help"), 1)
	if err := os.WriteFile(filepath.Join(dir, "help"), []byte("the image's help\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for typed, want := range map[string]string{
		"":             "the image's help",
		"--help":       "strata --help",
		"-h":           "strata -h",
		"--version":    "strata --version",
		"aip --help":   "aip --help",
		"strata aip x": "strata aip x",
	} {
		out, err := exec.Command("sh", append([]string{"-c", script, "runscript"}, strings.Fields(typed)...)...).CombinedOutput()
		if got := strings.TrimSpace(string(out)); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", typed, got, err, want)
		}
	}
}
