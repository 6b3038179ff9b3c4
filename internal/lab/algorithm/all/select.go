package all

import "github.com/bmqelect/bmqelect/internal/lab/algorithm"

// Select returns the algorithms of those names, in their order, and the error of the first
// that there is not.
func Select(names ...string) (chosen []algorithm.Algorithm, err error) {
	for _, name := range names {
		a, err := Find(name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, a)
	}
	return chosen, nil
}
