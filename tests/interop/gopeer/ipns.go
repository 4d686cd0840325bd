package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/ipfs/boxo/ipns"
)

func ipnsVerifyCommand(_ context.Context, args []string) error {
	name, err := ipns.NameFromString(args[0])
	if err != nil {
		return err
	}
	data, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	record, err := ipns.UnmarshalRecord(data)
	if err != nil {
		return err
	}
	if err := ipns.ValidateWithName(record, name); err != nil {
		return err
	}
	value, err := record.Value()
	if err != nil {
		return err
	}
	sequence, err := record.Sequence()
	if err != nil {
		return err
	}
	validity, err := record.Validity()
	if err != nil {
		return err
	}
	ttl, err := record.TTL()
	if err != nil {
		return err
	}
	fmt.Println(value, sequence, validity.UTC().Format(time.RFC3339Nano), ttl.Nanoseconds())
	return nil
}

func ipnsSelectCommand(_ context.Context, args []string) error {
	name, err := ipns.NameFromString(args[0])
	if err != nil {
		return err
	}
	var records [][]byte
	for _, path := range args[1:] {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		records = append(records, data)
	}
	best, err := ipns.Validator{}.Select(string(name.RoutingKey()), records)
	if err != nil {
		return err
	}
	fmt.Println(best)
	return nil
}
