package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"strings"
)

// binary is a file and its place in the image.
type binary struct {
	file string // on this machine
	path string // in the image, from the root
}

// content is a binary that has been read and found fit.
type content struct {
	path     string
	data     []byte
	arch     string // GOARCH
	revision string // the commit it was built from, where it says so
}

// architectures are the machines whose GOARCH follows from the ELF header.
var architectures = map[elf.Machine]string{
	elf.EM_386:     "386",
	elf.EM_AARCH64: "arm64",
	elf.EM_ARM:     "arm",
	elf.EM_PPC64:   "ppc64le",
	elf.EM_RISCV:   "riscv64",
	elf.EM_S390:    "s390x",
	elf.EM_X86_64:  "amd64",
}

// read loads the binary and refuses one that could not start in an image with
// nothing beside it.
func (b binary) read() (content, error) {
	data, err := os.ReadFile(b.file)
	if err != nil {
		return content{}, fmt.Errorf("read binary: %w", err)
	}
	arch, err := inspect(data)
	if err != nil {
		return content{}, fmt.Errorf("%s %w", b.file, err)
	}
	c := content{path: b.path, data: data, arch: arch}
	if info, err := buildinfo.Read(bytes.NewReader(data)); err == nil { // else not made by Go, which is fine
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				c.revision = s.Value
			}
		}
	}
	return c, nil
}

// inspect returns the architecture of a static program for Linux. Its errors
// go on from the file's name.
func inspect(data []byte) (arch string, err error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return "", fmt.Errorf("is no program for Linux (%w): build it with GOOS=linux", err)
	}
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return "", fmt.Errorf("is an ELF file but no program (%v): give what the linker wrote", f.Type)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", dynamic(f)
		}
	}
	if libs, err := f.ImportedLibraries(); err == nil && len(libs) > 0 {
		return "", dynamic(f)
	}
	arch, known := architectures[f.Machine]
	if !known {
		return "", fmt.Errorf("is for %v, which has no GOARCH here", f.Machine)
	}
	return arch, nil
}

// dynamic says what the program would miss.
func dynamic(f *elf.File) error {
	needs := "a dynamic loader"
	if libs, err := f.ImportedLibraries(); err == nil && len(libs) > 0 {
		needs = strings.Join(libs, ", ")
	}
	return fmt.Errorf("is not static, it needs %s: build it with CGO_ENABLED=0", needs)
}

// sameArch returns the one architecture of all contents, which must be want
// unless that is empty.
func sameArch(contents []content, binaries []binary, want string) (string, error) {
	if want == "" {
		want = contents[0].arch
	}
	var wrong []error
	for i, c := range contents {
		if c.arch != want {
			wrong = append(wrong, fmt.Errorf("%s is for %s, the image is for %s: build it with GOARCH=%s", binaries[i].file, c.arch, want, want))
		}
	}
	return want, errors.Join(wrong...)
}
