package main

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/ipfs/boxo/blockservice"
	"github.com/ipfs/boxo/exchange/offline"
	"github.com/ipfs/boxo/gateway"
)

func gatewayCommand(ctx context.Context, args []string) error {
	store, root, _, err := load(ctx, args[0])
	if err != nil {
		return err
	}
	backend, err := gateway.NewBlocksBackend(blockservice.New(store, offline.Exchange(store)))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	handler := gateway.NewHandler(gateway.Config{DeserializedResponses: true}, backend)
	fmt.Printf("http://%s %s\n", listener.Addr(), root)
	return http.Serve(listener, handler)
}
