package words

import "strings"

// Nearest returns the known name that is nearest to a wrong one, "" if none is near. A name is
// near with at most one mistake in a short name or two in a longer one, or if only its section
// differs.
func Nearest(name string, known []string) string {
	for _, k := range known {
		if strings.HasSuffix(k, "."+name) || strings.HasSuffix(name, "."+k) {
			return k
		}
	}
	most := 2
	if len(name) <= 4 {
		most = 1
	}
	for mistakes := 1; mistakes <= most; mistakes++ {
		for _, k := range known {
			if mistakes < len(k) && near(name, k, mistakes) {
				return k
			}
		}
	}
	return ""
}

// near reports whether a becomes b by so many letters inserted, deleted, replaced or
// exchanged with their neighbor.
func near(a, b string, mistakes int) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	switch {
	case a == "" || b == "":
		return len(a)+len(b) <= mistakes
	case mistakes == 0:
		return false
	case len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] && near(a[2:], b[2:], mistakes-1):
		return true
	}
	return near(a[1:], b, mistakes-1) || near(a, b[1:], mistakes-1) || near(a[1:], b[1:], mistakes-1)
}
