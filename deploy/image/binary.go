package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"os"
	"slices"
	"strings"
)

// executable is a program that can start in an image without any other file.
type executable struct {
	data     []byte
	arch     string // GOARCH
	revision string // the commit of its source; empty if unknown
}

// architectures are the machines for which the ELF header determines GOARCH.
var architectures = map[elf.Machine]string{
	elf.EM_386:     "386",
	elf.EM_AARCH64: "arm64",
	elf.EM_ARM:     "arm",
	elf.EM_PPC64:   "ppc64le",
	elf.EM_RISCV:   "riscv64",
	elf.EM_S390:    "s390x",
	elf.EM_X86_64:  "amd64",
}

func readProgram(file string) (executable, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return executable{}, fmt.Errorf("read binary: %w", err)
	}
	arch, err := inspect(data)
	if err != nil {
		return executable{}, fmt.Errorf("%s %w", file, err)
	}
	p := executable{data: data, arch: arch}
	if info, err := buildinfo.Read(bytes.NewReader(data)); err == nil { // only Go programs have build information
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				p.revision = s.Value
			}
		}
	}
	return p, nil
}

// inspect returns the architecture of a static program for Linux. Its errors continue a sentence
// that begins with the file's name.
func inspect(data []byte) (arch string, err error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return "", fmt.Errorf("is not a program for Linux (%w): build it with GOOS=linux", err)
	}
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return "", fmt.Errorf("is an ELF file but no program (%v): give what the linker wrote", f.Type)
	}
	libraries, _ := f.ImportedLibraries() // none if the list cannot be read
	loads := func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }
	if slices.ContainsFunc(f.Progs, loads) && len(libraries) == 0 {
		libraries = []string{"a dynamic loader"}
	}
	if len(libraries) > 0 {
		return "", fmt.Errorf("is not static, it needs %s: build it with CGO_ENABLED=0", strings.Join(libraries, ", "))
	}
	arch, known := architectures[f.Machine]
	if !known {
		return "", fmt.Errorf("is for %v, which has no GOARCH here", f.Machine)
	}
	return arch, nil
}
