// Package workers spreads numbered tasks over goroutines: the one loop that all number crunching here shares.
package workers
