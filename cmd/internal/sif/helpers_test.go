package sif

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"strata/pkg/sif/deb"
	"strata/pkg/sif/recipe"
	"strata/tests/debtest"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// withMirror is "with-mirror LOCK CMD...": it runs a command while there is a
// Debian archive of tiny packages, which the lock file names; the environment
// has its address. The folder bin has a program for images.
func withMirror() {
	a := debtest.NewArchive()
	lock := &deb.Lock{Suite: recipe.Suite, Arch: runtime.GOARCH, Date: time.Unix(1e9, 0)}
	for _, name := range recipe.Packages {
		p := debtest.Package{Name: name, Version: "1", Arch: runtime.GOARCH, Files: []debtest.File{{Name: "./usr/share/" + name, Text: name}}}
		if name == "ca-certificates" {
			p.Files = []debtest.File{{Name: "./usr/share/ca-certificates/a.crt", Text: "certificate\n"}}
		}
		lock.Packages = append(lock.Packages, a.Add(deb.Main, p))
	}
	for _, name := range recipe.ForNVIDIA {
		a.Add(deb.Main, debtest.Package{Name: name, Version: "1", Arch: runtime.GOARCH})
	}
	a.Publish(recipe.Suite, runtime.GOARCH, ".xz")
	s := httptest.NewServer(a)
	defer s.Close()
	f, err := os.Create(os.Args[1])
	check(err)
	check(lock.Write(f))
	check(f.Close())
	k, err := os.Create("archive.asc")
	check(err)
	check(writeKey(k, openpgp.PublicKeyType, a.Key.Serialize))
	check(os.MkdirAll("bin", 0o755))
	check(os.WriteFile(filepath.Join("bin", "aip"), emptyProgram(), 0o755))

	c := exec.Command(os.Args[2], os.Args[3:]...)
	c.Env = append(os.Environ(), "STRATA_DEBIAN_MIRROR="+s.URL+"/debian", "STRATA_DEBIAN_SNAPSHOT="+s.URL+"/snapshot")
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		s.Close()
		os.Exit(max(1, c.ProcessState.ExitCode()))
	}
}

// emptyProgram is a file header of the ELF format, for this machine, with
// nothing behind it.
func emptyProgram() []byte {
	machine := elf.EM_X86_64
	if runtime.GOARCH == "arm64" {
		machine = elf.EM_AARCH64
	}
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Ehsize: 64, Phentsize: 56, Shentsize: 64}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	var b bytes.Buffer
	check(binary.Write(&b, binary.LittleEndian, h))
	return b.Bytes()
}

// makeKey is "make-key NAME [PASSPHRASE]": it writes NAME.key and NAME.pub, a new key.
func makeKey() {
	name := os.Args[1]
	key, err := openpgp.NewEntity(name, "", name+"@example.org", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	check(err)
	pub, err := os.Create(name + ".pub")
	check(err)
	check(writeKey(pub, openpgp.PublicKeyType, key.Serialize))
	private, err := os.Create(name + ".key")
	check(err)
	write := func(w io.Writer) error { return key.SerializePrivate(w, nil) }
	if len(os.Args) > 2 {
		check(key.EncryptPrivateKeys([]byte(os.Args[2]), nil))
		write = func(w io.Writer) error { return key.SerializePrivateWithoutSigning(w, nil) }
	}
	check(writeKey(private, openpgp.PrivateKeyType, write))
}

func writeKey(f *os.File, kind string, write func(io.Writer) error) error {
	w, err := armor.Encode(f, kind, nil)
	check(err)
	check(write(w))
	check(w.Close())
	return f.Close()
}
