// Package configtest checks what every role's configuration has to hold to: each key is documented, and the annotated
// example file that is generated from the struct is the committed one and loads back to the defaults. It is for tests.
package configtest
