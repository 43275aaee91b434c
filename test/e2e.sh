#!/usr/bin/env bash
# Runs end-to-end tests: test/e2e.sh [go test's flags and packages].
#
# They measure programs that share this machine with a whole cluster, so a test can
# fail because the machine was busy. At most three tests that fail are run a second
# time, alone, and decide by that. Both runs are in the output. A panic, a package that
# fails without a test, and more failures than that are final.
set -uo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -v "$@" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
[ "$status" -eq 0 ] && exit 0

# The output of a package ends with its line FAIL. Prints each package with its tests.
failed=$(awk -F'[ \t]' '
	/^panic: /{final = 1}
	/^--- FAIL: /{tests = tests "|" $3; count++}
	/^FAIL\t/{if (tests == "") final = 1; else print $2, "^(" substr(tests, 2) ")$"; tests = ""}
	END {if (final || count > 3) print "final"}' "$log")
case $failed in
"" | *final) exit "$status" ;;
esac

flags=()
for argument in "$@"; do
	case $argument in
	./*) ;; # a package
	*) flags+=("$argument") ;;
	esac
done
while read -r package tests; do
	echo "=== SECOND RUN of $tests in $package"
	go test -v "${flags[@]}" -run "$tests" "$package" || exit
done <<<"$failed"
