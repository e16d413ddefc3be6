// Package replace gives small files new content in one step, so that no reader ever sees half of it.
package replace
