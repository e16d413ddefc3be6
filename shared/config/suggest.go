package config

import (
	"slices"
	"strings"
)

// meant suggests the key that an unknown one was meant to be, as a clause to add to a message, or "".
func (s *schema) meant(unknown string) string {
	if best := nearest(unknown, s.paths()); best != "" {
		return ": did you mean " + best + "?"
	}
	return ""
}

// meantVariable is meant for names of environment variables.
func (s *schema) meantVariable(unknown string) string {
	var names []string
	for _, p := range s.paths() {
		names = append(names, s.byPath[p].env())
	}
	if best := nearest(unknown, names); best != "" {
		return ": did you mean " + best + "?"
	}
	return ""
}

// nearest is the name at the smallest edit distance, when that is at most a third of the length, else one that ends
// like the word (the right key in the wrong table), else "".
func nearest(word string, names []string) string {
	best, bound := "", len(word)/3+1
	if len(word) > 128 {
		return ""
	}
	for _, name := range names {
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < bound {
			best, bound = name, d
		}
	}
	if best != "" {
		return best
	}
	last := word[strings.LastIndexByte(word, '.')+1:]
	if i := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix("."+name, "."+last) }); i >= 0 {
		return names[i]
	}
	return ""
}

// distance counts the single letters to insert, delete or replace to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
