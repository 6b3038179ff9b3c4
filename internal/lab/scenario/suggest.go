package scenario

import "strings"

// suggest ends a message about an unknown name: the name that was meant, if one
// is near, and otherwise all that there are.
func suggest(name string, known []string) string {
	if near := nearest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	if len(known) == 1 {
		return "there is only " + known[0]
	}
	return "there are " + strings.Join(known, ", ")
}

// nearest returns the known name with the fewest mistakes in it, at most one in
// a short name and two in a longer one, or one that differs in its section only.
func nearest(name string, known []string) (near string) {
	least := 3
	if len(name) <= 4 {
		least = 2
	}
	for _, k := range known {
		if strings.HasSuffix(k, "."+name) || strings.HasSuffix(name, "."+k) {
			return k
		}
		if len(name) >= len(k)+least {
			continue // however long it is
		}
		if d := distance(name, k); d < least && d < len(k) {
			near, least = k, d
		}
	}
	return near
}

// distance is the number of letters to insert, delete, replace or exchange with
// their neighbor to make b of a.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+differ(a[i-1], b[j-1]))
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

func differ(x, y byte) int {
	if x == y {
		return 0
	}
	return 1
}
