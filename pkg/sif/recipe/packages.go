package recipe

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"slices"
	"strings"

	"strata/pkg/pattern"
	"strata/pkg/sif"
	"strata/pkg/sif/deb"
	"strata/pkg/sif/spdx"
	"strata/pkg/work"
)

// Suite is the Debian release of the packages.
const Suite = "bookworm"

// Packages lists the packages requested for the image: a shell, ps and text tools for workflow engines,
// certificates and time zones. libc-bin provides the locale C.UTF-8 and getent, libopenjp2-7 decodes JPEG
// 2000.
var Packages = []string{
	"bash", "ca-certificates", "coreutils", "gawk", "grep", "gzip", "libc-bin", "libopenjp2-7", "procps", "sed", "tar", "tzdata",
}

// ForNVIDIA lists packages with further dependencies of NVIDIA's libraries.
var ForNVIDIA = []string{"ibverbs-providers", "libibverbs1", "librdmacm1", "libstdc++6"}

// skip lists packages that others need only while they are installed or run as services, neither of which
// happens here.
var skip = []string{
	"adduser",                // makes users for services
	"debconf", "debconf-2.0", // asks questions
	"dpkg", "install-info", // keep books of what is installed
	"init-system-helpers", "lsb-base", // start services
	"openssl", // makes hash links of certificates; the bundle is made here
}

// Strip lists files and folders of the packages that are left out, as patterns of path.Match below the root.
var Strip = []string{
	"etc/cron.*", "etc/init.d", "etc/kernel", "etc/update-motd.d",
	"usr/bin/bashbug", "usr/bin/iconv", "usr/bin/localedef", "usr/games", "usr/include",
	"usr/lib/*/awk", "usr/share/awk", // gawk's examples
	"usr/lib/*/libformw.so*", "usr/lib/*/libmenuw.so*", "usr/lib/*/libpanelw.so*", // ncurses, beside what top needs
	"usr/lib/*/libBrokenLocale.so*", "usr/lib/*/libc_malloc_debug.so*", "usr/lib/*/libmemusage.so*", "usr/lib/*/libpcprofile.so*", "usr/lib/*/libthread_db.so*",
	"usr/lib/*/libmvec.so*", "usr/sbin/iconvconfig", "usr/sbin/ldconfig", "usr/sbin/zic",
	"usr/lib/*/gawk", "usr/bin/gawkbug", "usr/lib/*/libnss_hesiod.so*", "usr/lib/*/libanl.so*", "usr/bin/sotruss", "usr/bin/tzselect", "usr/share/zoneinfo/tzdata.zi", // gawk's extensions, and what no program here calls
	"usr/lib/*/gconv", "usr/lib/init", "usr/lib/systemd", "usr/lib/sysctl.d", "usr/lib/tmpfiles.d",
	"usr/share/bash-completion", "usr/share/bug", "usr/share/gdb", "usr/share/info", "usr/share/lintian", "usr/share/locale",
	"usr/share/man", "usr/share/menu", "usr/share/pixmaps", "usr/share/zoneinfo/posix", "usr/share/zoneinfo/right",
	"var/cache", "var/log", "var/mail", "var/opt", "var/spool",
}

// keptDoc are the files of /usr/share/doc that stay: licences.
var keptDoc = pattern.Lazy(`^usr/share/doc/[^/]+(/copyright(\..*)?)?$`)

// stripped reports whether a file of a package is left out.
func stripped(name string) bool {
	if strings.HasPrefix(name, "usr/share/doc/") {
		return !keptDoc().MatchString(name)
	}
	for dir := name; dir != "."; dir = path.Dir(dir) {
		for _, pattern := range Strip {
			if ok, _ := path.Match(pattern, dir); ok {
				return true
			}
		}
	}
	return false
}

// merged returns the place of a package's file in the image: folders such as /bin are links into /usr there,
// as in every Debian since 12, but not in the packages.
func merged(name string) string {
	first, _, _ := strings.Cut(name, "/")
	switch first {
	case "bin", "sbin", "lib", "lib32", "lib64", "libx32":
		return "usr/" + name
	}
	return name
}

// packages returns the packages of the lock that the image has.
func (r *Recipe) packages() []*deb.Package {
	if r.NVIDIA {
		return slices.Concat(r.Lock.Packages, r.Lock.Extra)
	}
	return r.Lock.Packages
}

// addPackages fetches the packages of the lock and unpacks them.
func (r *Recipe) addPackages(ctx context.Context, root *sif.Root, temp string) ([]spdx.Package, error) {
	list := r.packages()
	files := make([]string, len(list))
	err := work.Share(ctx, 4, len(list), func(ctx context.Context, _ int, packages iter.Seq[int]) (err error) {
		for i := range packages {
			if files[i], err = r.Mirror.Package(ctx, list[i], r.Lock.Date, temp); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{"bin", "lib", "sbin"} {
		if err := mergedFolder(root, dir); err != nil {
			return nil, err
		}
	}
	var status bytes.Buffer
	for i, p := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		control, err := unpack(root, files[i])
		if err == nil && (control.Fields["Package"] != p.Name || control.Fields["Version"] != p.Version) {
			err = fmt.Errorf("it is %s %s", control.Fields["Package"], control.Fields["Version"])
		}
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", p, err)
		}
		writeStatus(&status, control)
	}
	if root.Exists("usr/lib64") {
		if err := mergedFolder(root, "lib64"); err != nil {
			return nil, err
		}
	}
	// Tools that look for known weaknesses read this.
	if err := root.Write("var/lib/dpkg/status", 0o644, &status); err != nil {
		return nil, err
	}
	var lock bytes.Buffer
	if err := r.Lock.Write(&lock); err != nil {
		return nil, err
	}
	if err := root.Write(LockFile, 0o644, &lock); err != nil {
		return nil, err
	}
	return r.packageBill(root)
}

func mergedFolder(root *sif.Root, dir string) error {
	if err := root.Mkdir("usr/"+dir, 0o755); err != nil {
		return err
	}
	return root.Symlink("usr/"+dir, dir)
}

// unpack puts the files of a package into the root.
func unpack(root *sif.Root, file string) (*deb.Control, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return deb.Unpack(f, func(h *tar.Header, content io.Reader) error {
		name := h.Name
		if name == "." {
			return nil
		}
		name = merged(name)
		if stripped(name) {
			return nil
		}
		switch h.Typeflag {
		case tar.TypeDir:
			if _, err := root.Readlink(name); err == nil {
				return nil // a link to a folder stays one
			}
			return root.Mkdir(name, h.FileInfo().Mode())
		case tar.TypeReg:
			return root.Write(name, h.FileInfo().Mode(), content)
		case tar.TypeSymlink:
			return root.Symlink(h.Linkname, name)
		case tar.TypeLink:
			if target := merged(h.Linkname); !stripped(target) {
				return root.Link(target, name)
			}
			return fmt.Errorf("a second name of %s, which is left out", h.Linkname)
		}
		return fmt.Errorf("a file of the kind %q", h.Typeflag)
	})
}

// writeStatus appends a package to the books of dpkg.
func writeStatus(w *bytes.Buffer, c *deb.Control) {
	for line := range strings.Lines(strings.TrimSpace(string(c.Text))) {
		w.WriteString(strings.TrimRight(line, "\r\n") + "\n")
		if strings.HasPrefix(line, "Package:") {
			w.WriteString("Status: install ok installed\n")
		}
	}
	w.WriteString("\n")
}
