package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: protogen FOLDER FILE.proto")
		os.Exit(2)
	}
	if err := generate(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

// generate writes the Go files of one .proto file beside it.
func generate(ctx context.Context, folder, file string) error {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{folder}},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	parsed, err := compiler.Compile(ctx, file)
	if err != nil {
		return fmt.Errorf("parse %s: %w", file, err)
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{file}, Parameter: proto.String("paths=source_relative"),
		ProtoFile: []*descriptorpb.FileDescriptorProto{protoutil.ProtoFromFileDescriptor(parsed[0])},
		CompilerVersion: &pluginpb.Version{
			Major: proto.Int32(0), Minor: proto.Int32(0), Patch: proto.Int32(0), Suffix: proto.String("protocompile"),
		},
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		if err := run(ctx, plugin, request, folder); err != nil {
			return fmt.Errorf("run %s: %w", plugin, err)
		}
	}
	return nil
}

// run has one plugin answer the request and writes the files that it gives.
func run(ctx context.Context, plugin string, request *pluginpb.CodeGeneratorRequest, folder string) error {
	in, err := proto.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "tool", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var answer pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &answer); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	if answer.Error != nil {
		return errors.New(answer.GetError())
	}
	for _, f := range answer.File {
		name := f.GetName()
		if name != filepath.Base(name) || !strings.HasSuffix(name, ".go") {
			return fmt.Errorf("file %q is not beside the .proto file", name)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(f.GetContent()), 0o644); err != nil {
			return fmt.Errorf("write generated file: %w", err)
		}
	}
	return nil
}
