package main

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// kubectl-weir is for the machines people work on: what it is made of, of ours, has the
// right types on each system. Bodies of functions of others are left out, and no code is
// made, which would take minutes.
func TestOtherSystems(t *testing.T) {
	const ours = "github.com/weir-metrics/weir/"
	for _, system := range []string{"darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			load := func(mode packages.LoadMode, patterns ...string) []*packages.Package {
				loaded, err := packages.Load(&packages.Config{
					Context: t.Context(), Mode: mode, Env: append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
				}, patterns...)
				if err != nil {
					t.Fatal(err)
				}
				return loaded
			}
			var parts []string
			packages.Visit(load(packages.NeedName|packages.NeedImports|packages.NeedDeps, "."), nil, func(p *packages.Package) {
				if strings.HasPrefix(p.PkgPath, ours) {
					parts = append(parts, p.PkgPath)
				}
			})
			if len(parts) < 2 {
				t.Fatalf("of ours it is made of %q, want more", parts)
			}
			packages.Visit(load(packages.NeedName|packages.NeedImports|packages.NeedDeps|packages.NeedTypes|packages.NeedSyntax|packages.NeedTypesInfo, parts...), nil,
				func(p *packages.Package) {
					for _, err := range p.Errors {
						t.Error(err)
					}
				})
		})
	}
}
