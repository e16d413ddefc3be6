// Package catalog lists the kinds of proof and the circuits that this build knows. It is the one place where a new kind
// is added; everything else finds circuits here and knows none by name.
package catalog
