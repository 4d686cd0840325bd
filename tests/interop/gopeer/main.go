// Gopeer is the Go IPFS library (boxo, what Kubo is made of) as a counterpart of ipfsmem's tests: it imports, packs,
// unpacks and verifies what ipfsmem writes, serves it through the real gateway, and judges IPNS records. It holds no
// logic of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
)

type command struct {
	usage string
	run   func(ctx context.Context, args []string) error
	args  int
}

var commands = map[string]command{
	"cid":         {"PATH: root CID of a file or folder", cidCommand, 1},
	"pack":        {"PATH OUT.car: the same, with a CAR of all blocks", packCommand, 2},
	"unpack":      {"CAR DIR: write the tree of the CAR's root to DIR, which must not exist", unpackCommand, 2},
	"verify":      {"CAR: read strictly, check every hash and that the tree is whole; root and number of blocks", verifyCommand, 1},
	"gateway":     {"CAR: serve the CAR's blocks on a port of 127.0.0.1, whose URL is printed", gatewayCommand, 1},
	"serve":       {"gateway and delegated routing on a port of 127.0.0.1, whose URL is printed; takes CARs at POST /car", serveCommand, 0},
	"ipns-verify": {"NAME RECORDFILE: validate a record; value, sequence, validity, TTL in ns", ipnsVerifyCommand, 2},
	"ipns-select": {"NAME RECORDFILE...: index of the record that wins", ipnsSelectCommand, -2},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gopeer:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("usage:\n" + usage())
	}
	cmd, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("no command %q; usage:\n%s", args[0], usage())
	}
	given := len(args) - 1
	if (cmd.args >= 0 && given != cmd.args) || (cmd.args < 0 && given < -cmd.args) {
		return fmt.Errorf("usage: gopeer %s %s", args[0], cmd.usage)
	}
	return cmd.run(context.Background(), args[1:])
}

func usage() string {
	var lines []string
	for name, cmd := range commands {
		lines = append(lines, "  gopeer "+name+" "+cmd.usage)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}
