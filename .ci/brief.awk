# Reads `go test -v` and shows what a person wants to know: a line per package, all
# that a failed test wrote, and which tests were skipped, and why.

$1 == "===" { current = $3; next }

/^ *--- (FAIL|SKIP): / {
	printf "%s%s\n", wrote[$3], $0
	delete wrote[$3]
	next
}

/^ *--- PASS: / { delete wrote[$3]; next }

# A race is reported in the midst of some test, seldom of its own; a panic ends all.
/^WARNING: DATA RACE/ { race = 1 }
race { print; race = !/^=====/; next }
/^panic:/ { current = "" }

# The end of a package: what is left belongs to tests that never ended.
/^(ok|FAIL|\?)[ \t]/ {
	if ($1 == "FAIL")
		for (name in wrote) printf "%s", wrote[name]
	split("", wrote)
	current = ""
	if (!/no test files/) print
	next
}

/^(PASS|FAIL)$/ { next }
current == "" { print; next }
{ wrote[current] = wrote[current] $0 "\n" }
