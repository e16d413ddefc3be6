// Command protogen turns a .proto file into Go: messages by protoc-gen-go, the service by protoc-gen-go-grpc, both
// pinned as tools of this module. It parses the file itself, so that no protoc has to be installed.
//
//	go run ./protogen FOLDER FILE.proto
//
// The generated files are written beside the .proto file. It is run by "go generate"; builds do not need it.
package main
