package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ipfs/boxo/blockservice"
	"github.com/ipfs/boxo/blockstore"
	"github.com/ipfs/boxo/exchange/offline"
	"github.com/ipfs/boxo/gateway"
	"github.com/ipfs/boxo/ipns"
	"github.com/ipfs/boxo/routing/http/server"
	"github.com/ipfs/boxo/routing/http/types"
	"github.com/ipfs/boxo/routing/http/types/iter"
	blocks "github.com/ipfs/go-block-format"
	"github.com/ipfs/go-cid"
	carv2 "github.com/ipld/go-car/v2"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/routing"
	"github.com/multiformats/go-multiaddr"
)

// peerID is a well-formed identity to stand in provider records.
const peerID = "12D3KooWM8sovaEGU1bmiWGWAzvs47DEcXKZZTuJnpQyVTkRs2Vn"

// node keeps blocks, names and provider records in memory.
type node struct {
	store     blockstore.Blockstore
	mu        sync.Mutex
	values    map[string][]byte
	providers map[string][]string
}

// serveCommand runs gateway and delegated routing with boxo's own handlers, and takes CARs at POST /car.
// PUT /providers/{cid} with one multiaddr a line says who is to be named for a CID.
func serveCommand(_ context.Context, _ []string) error {
	n := &node{store: memoryStore(), values: map[string][]byte{}, providers: map[string][]string{}}
	backend, err := gateway.NewBlocksBackend(
		blockservice.New(n.store, offline.Exchange(n.store)), gateway.WithValueStore(n))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	content := gateway.NewHandler(gateway.Config{DeserializedResponses: true}, backend)
	mux := http.NewServeMux()
	mux.Handle("/ipfs/", content)
	mux.Handle("/ipns/", content)
	mux.Handle("/routing/v1/", server.Handler(n))
	mux.HandleFunc("POST /car", n.takeCar)
	mux.HandleFunc("PUT /providers/{cid}", n.takeProviders)
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, mux)
}

func (n *node) takeCar(w http.ResponseWriter, r *http.Request) {
	reader, err := carv2.NewBlockReader(r.Body, carv2.WithTrustedCAR(false))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var all []blocks.Block
	for {
		block, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		all = append(all, block)
	}
	if err := n.store.PutMany(r.Context(), all); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, reader.Roots[0], len(all))
}

func (n *node) takeProviders(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.providers[r.PathValue("cid")] = strings.Fields(string(body))
}

// PutValue and the next two make a node the value store of the gateway, with the rules of the network.
func (n *node) PutValue(_ context.Context, key string, value []byte, _ ...routing.Option) error {
	validator := ipns.Validator{}
	if err := validator.Validate(key, value); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if held, ok := n.values[key]; ok {
		best, err := validator.Select(key, [][]byte{held, value})
		if err != nil {
			return err
		}
		if best == 0 {
			return nil
		}
	}
	n.values[key] = value
	return nil
}

func (n *node) GetValue(_ context.Context, key string, _ ...routing.Option) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if value, ok := n.values[key]; ok {
		return value, nil
	}
	return nil, routing.ErrNotFound
}

func (n *node) SearchValue(ctx context.Context, key string, _ ...routing.Option) (<-chan []byte, error) {
	out := make(chan []byte, 1)
	if value, err := n.GetValue(ctx, key); err == nil {
		out <- value
	}
	close(out)
	return out, nil
}

func (n *node) GetIPNS(ctx context.Context, name ipns.Name) (*ipns.Record, error) {
	value, err := n.GetValue(ctx, string(name.RoutingKey()))
	if err != nil {
		return nil, err
	}
	return ipns.UnmarshalRecord(value)
}

func (n *node) PutIPNS(ctx context.Context, name ipns.Name, record *ipns.Record) error {
	value, err := ipns.MarshalRecord(record)
	if err != nil {
		return err
	}
	return n.PutValue(ctx, string(name.RoutingKey()), value)
}

func (n *node) FindProviders(_ context.Context, c cid.Cid, _ int) (iter.ResultIter[types.Record], error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id, err := peer.Decode(peerID)
	if err != nil {
		return nil, err
	}
	var found []iter.Result[types.Record]
	for _, text := range n.providers[c.String()] {
		address, err := multiaddr.NewMultiaddr(text)
		if err != nil {
			return nil, err
		}
		found = append(found, iter.Result[types.Record]{Val: &types.PeerRecord{
			Schema:    types.SchemaPeer,
			ID:        &id,
			Addrs:     []types.Multiaddr{{Multiaddr: address}},
			Protocols: []string{"transport-ipfs-gateway-http"},
		}})
	}
	return iter.FromSlice(found), nil
}

func (n *node) ProvideBitswap(context.Context, *server.BitswapWriteProvideRequest) (time.Duration, error) {
	return 0, routing.ErrNotSupported
}

func (n *node) FindPeers(context.Context, peer.ID, int) (iter.ResultIter[*types.PeerRecord], error) {
	return iter.FromSlice([]iter.Result[*types.PeerRecord]{}), nil
}

func (n *node) GetClosestPeers(context.Context, cid.Cid) (iter.ResultIter[*types.PeerRecord], error) {
	return iter.FromSlice([]iter.Result[*types.PeerRecord]{}), nil
}
