package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ipfs/boxo/blockservice"
	"github.com/ipfs/boxo/blockstore"
	"github.com/ipfs/boxo/chunker"
	"github.com/ipfs/boxo/exchange/offline"
	"github.com/ipfs/boxo/files"
	"github.com/ipfs/boxo/ipld/merkledag"
	ufile "github.com/ipfs/boxo/ipld/unixfs/file"
	"github.com/ipfs/boxo/ipld/unixfs/importer/balanced"
	"github.com/ipfs/boxo/ipld/unixfs/importer/helpers"
	uio "github.com/ipfs/boxo/ipld/unixfs/io"
	blocks "github.com/ipfs/go-block-format"
	"github.com/ipfs/go-cid"
	"github.com/ipfs/go-datastore"
	dssync "github.com/ipfs/go-datastore/sync"
	ipld "github.com/ipfs/go-ipld-format"
	carv2 "github.com/ipld/go-car/v2"
	"github.com/ipld/go-car/v2/storage"
)

var profile = uio.UnixFS_v1_2025

// noLeaves forgets raw blocks, so that the CID of a large file needs no memory for its content.
type noLeaves struct{ blockstore.Blockstore }

func (s noLeaves) Put(ctx context.Context, b blocks.Block) error {
	if b.Cid().Prefix().Codec == cid.Raw {
		return nil
	}
	return s.Blockstore.Put(ctx, b)
}

func (s noLeaves) PutMany(ctx context.Context, all []blocks.Block) error {
	for _, b := range all {
		if err := s.Put(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func memoryStore() blockstore.Blockstore {
	return blockstore.NewBlockstore(dssync.MutexWrap(datastore.NewMapDatastore()))
}

func dagService(store blockstore.Blockstore) ipld.DAGService {
	return merkledag.NewDAGService(blockservice.New(store, offline.Exchange(store)))
}

func importPath(ctx context.Context, dag ipld.DAGService, path string) (ipld.Node, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	switch {
	case info.Mode().IsRegular():
		return importFile(dag, path)
	case info.IsDir():
		return importFolder(ctx, dag, path)
	}
	return nil, fmt.Errorf("%s is neither a file nor a folder", path)
}

func importFile(dag ipld.DAGService, path string) (ipld.Node, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	params := helpers.DagBuilderParams{
		Maxlinks:   profile.FileDAGWidth,
		RawLeaves:  profile.RawLeaves,
		CidBuilder: profile.CidBuilder(),
		Dagserv:    dag,
	}
	builder, err := params.New(chunk.NewSizeSplitter(f, profile.ChunkSize))
	if err != nil {
		return nil, err
	}
	return balanced.Layout(builder)
}

func importFolder(ctx context.Context, dag ipld.DAGService, path string) (ipld.Node, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	folder, err := uio.NewDirectory(dag, uio.WithCidBuilder(profile.CidBuilder()))
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		child, err := importPath(ctx, dag, filepath.Join(path, entry.Name()))
		if err != nil {
			return nil, err
		}
		if err := folder.AddChild(ctx, entry.Name(), child); err != nil {
			return nil, err
		}
	}
	node, err := folder.GetNode()
	if err != nil {
		return nil, err
	}
	return node, dag.Add(ctx, node)
}

func cidCommand(ctx context.Context, args []string) error {
	profile.ApplyGlobals()
	node, err := importPath(ctx, dagService(noLeaves{memoryStore()}), args[0])
	if err != nil {
		return err
	}
	fmt.Println(node.Cid())
	return nil
}

func packCommand(ctx context.Context, args []string) error {
	profile.ApplyGlobals()
	store := memoryStore()
	node, err := importPath(ctx, dagService(store), args[0])
	if err != nil {
		return err
	}
	out, err := os.Create(args[1])
	if err != nil {
		return err
	}
	defer out.Close()
	car, err := storage.NewWritable(out, []cid.Cid{node.Cid()}, carv2.WriteAsCarV1(true))
	if err != nil {
		return err
	}
	err = walk(ctx, store, node.Cid(), func(b blocks.Block) error {
		return car.Put(ctx, b.Cid().KeyString(), b.RawData())
	})
	if err != nil {
		return err
	}
	fmt.Println(node.Cid())
	return car.Finalize()
}

// walk visits every block below root once, parents first.
func walk(ctx context.Context, store blockstore.Blockstore, root cid.Cid, visit func(blocks.Block) error) error {
	stack := []cid.Cid{root}
	seen := cid.NewSet()
	for len(stack) > 0 {
		c := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !seen.Visit(c) {
			continue
		}
		block, err := store.Get(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
		if err := visit(block); err != nil {
			return err
		}
		if c.Prefix().Codec != cid.DagProtobuf {
			continue
		}
		node, err := merkledag.DecodeProtobuf(block.RawData())
		if err != nil {
			return err
		}
		links := node.Links()
		for i := len(links) - 1; i >= 0; i-- {
			stack = append(stack, links[i].Cid)
		}
	}
	return nil
}

// load reads a CAR strictly: NewBlockReader checks the hash of every block.
func load(ctx context.Context, path string) (blockstore.Blockstore, cid.Cid, int, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, cid.Undef, 0, err
	}
	defer f.Close()
	reader, err := carv2.NewBlockReader(f, carv2.WithTrustedCAR(false))
	if err != nil {
		return nil, cid.Undef, 0, err
	}
	if reader.Version != 1 || len(reader.Roots) != 1 {
		return nil, cid.Undef, 0, fmt.Errorf("version %d with %d roots", reader.Version, len(reader.Roots))
	}
	store := memoryStore()
	count := 0
	for {
		block, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return store, reader.Roots[0], count, nil
		}
		if err != nil {
			return nil, cid.Undef, 0, err
		}
		count++
		if err := store.Put(ctx, block); err != nil {
			return nil, cid.Undef, 0, err
		}
	}
}

func verifyCommand(ctx context.Context, args []string) error {
	store, root, count, err := load(ctx, args[0])
	if err != nil {
		return err
	}
	reached := 0
	if err := walk(ctx, store, root, func(blocks.Block) error { reached++; return nil }); err != nil {
		return err
	}
	if reached != count {
		return fmt.Errorf("%d blocks in the CAR, %d in the tree", count, reached)
	}
	fmt.Println(root, count)
	return nil
}

func unpackCommand(ctx context.Context, args []string) error {
	store, root, _, err := load(ctx, args[0])
	if err != nil {
		return err
	}
	dag := dagService(store)
	node, err := dag.Get(ctx, root)
	if err != nil {
		return err
	}
	tree, err := ufile.NewUnixfsFile(ctx, dag, node)
	if err != nil {
		return err
	}
	return files.WriteTo(tree, args[1])
}
