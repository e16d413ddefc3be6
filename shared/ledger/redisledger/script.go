package redisledger

import (
	"embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua
var files embed.FS

// operation names a script's file.
type operation string

const (
	opBegin    operation = "begin"
	opDeclare  operation = "declare"
	opEvict    operation = "evict"
	opExpire   operation = "expire"
	opForget   operation = "forget"
	opNode     operation = "node"
	opRelease  operation = "release"
	opRenew    operation = "renew"
	opReserve  operation = "reserve"
	opShrink   operation = "shrink"
	opTransfer operation = "transfer"
)

func operations() []operation {
	return []operation{
		opBegin, opDeclare, opEvict, opExpire, opForget, opNode, opRelease, opRenew, opReserve, opShrink, opTransfer,
	}
}

// life is one life of the store: its name and the scripts that run in it alone.
type life struct {
	run     string
	scripts map[operation]script
}

// script is a text and its name in the store's cache.
type script struct{ text, sha string }

// newLife makes the scripts of a life. clock is the text of the clock's function.
func newLife(run, clock string) *life {
	l := &life{run: run, scripts: map[operation]script{}}
	for _, op := range operations() {
		parts := []string{"local RUN = '" + run + "'", clock, read("text")}
		switch op {
		case opBegin, opDeclare, opForget:
			parts = append(parts, read(string(op)))
		case opNode:
			parts = append(parts, read("dump"), read(string(op)))
		case opReserve, opTransfer:
			parts = append(parts, read("dump"), read("prelude"), read(string(op)), read("grant"), read("commit"))
		default:
			parts = append(parts, read("prelude"), read(string(op)), read("commit"))
		}
		text := strings.Join(parts, "\n")
		l.scripts[op] = script{text, redis.NewScript(text).Hash()}
	}
	return l
}

func read(name string) string {
	text, err := files.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic(err) // embedded
	}
	return string(text)
}
