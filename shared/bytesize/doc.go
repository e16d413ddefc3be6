// Package bytesize is the one type for amounts of memory: sums that cannot wrap, a text form with units, and the bound
// below which every store keeps an amount exactly.
package bytesize
