module github.com/proofrack/proofrack/worker-synth

go 1.26.8

require github.com/proofrack/proofrack/shared v0.0.0

replace github.com/proofrack/proofrack/shared => ../shared
