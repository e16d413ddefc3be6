module github.com/proofrack/proofrack/tools

go 1.26.8
