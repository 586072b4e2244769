// Temporal's server for one machine (architecture §7): frontend, history, matching and worker in one process over
// SQLite, with the web UI beside it. Built by the host where Temporal's own command cannot be had, from the server's
// own packages, with the sums in go.sum. It takes the flags of `temporal server start-dev` that the host passes; what
// the host always wants is a default here.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	uiversion "github.com/temporalio/ui-server/v2/server/version"
	"go.temporal.io/server/common/headers"
)

type settings struct {
	ip            string
	port          int
	uiPort        int
	headless      bool
	dbFilename    string
	namespace     string
	logLevel      string
	dynamicConfig map[string]any
	sqlitePragmas map[string]string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "openwop-temporal dev server:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 1 && (args[0] == "--version" || args[0] == "-version") {
		// The form of Temporal's own command, so that one check reads both.
		fmt.Printf("temporal version 0.0.0-openwop (Server %s, UI %s)\n", headers.ServerVersion, uiversion.UIVersion)
		return nil
	}
	settings, err := parse(args)
	if err != nil {
		return err
	}
	server, err := newServer(settings)
	if err != nil {
		return err
	}
	// Before the start: a signal that comes meanwhile ends the server in order, too.
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	if err := server.start(); err != nil {
		return err
	}
	<-stop
	return server.stop()
}

func parse(args []string) (settings, error) {
	parsed := settings{
		// Each opens a gate that is set for big clusters: activities start with the task that scheduled them, and a
		// workflow task does not wait for a tick of 50 ms.
		dynamicConfig: map[string]any{
			"system.enableActivityEagerExecution":            true,
			"history.transferProcessorMaxPollRPS":            2000,
			"frontend.namespaceRPS.visibility":               100,
			"system.forceSearchAttributesCacheRefreshOnRead": true,
			// Nobody outside is told what runs here.
			"frontend.enableServerVersionCheck": false,
		},
		// One writer, readers beside it; what a power loss may take is said in the README.
		sqlitePragmas: map[string]string{"journal_mode": "WAL", "synchronous": "NORMAL"},
	}
	words := args
	for len(words) > 0 && (words[0] == "server" || words[0] == "start-dev") {
		words = words[1:]
	}
	flags := flag.NewFlagSet("dev-server", flag.ContinueOnError)
	flags.StringVar(&parsed.ip, "ip", "127.0.0.1", "address of the frontend and the UI")
	flags.IntVar(&parsed.port, "port", 7233, "port of the frontend")
	flags.IntVar(&parsed.uiPort, "ui-port", 8233, "port of the web UI")
	flags.BoolVar(&parsed.headless, "headless", false, "without the web UI")
	flags.StringVar(&parsed.dbFilename, "db-filename", "", "SQLite file; without it nothing survives the process")
	flags.StringVar(&parsed.namespace, "namespace", "default", "namespace that exists from the start")
	flags.StringVar(&parsed.logLevel, "log-level", "error", "debug, info, warn or error")
	flags.Func("log-format", "json, the only one", func(value string) error {
		if value != "json" {
			return errors.New("only json is written")
		}
		return nil
	})
	flags.Func("dynamic-config-value", "KEY=JSON, repeatable", func(pair string) error {
		key, value, found := strings.Cut(pair, "=")
		if !found {
			return errors.New("must be KEY=JSON")
		}
		decoded, err := decode(value)
		if err != nil {
			return fmt.Errorf("the value of %s is not JSON: %w", key, err)
		}
		parsed.dynamicConfig[key] = decoded
		return nil
	})
	flags.Func("sqlite-pragma", "journal_mode=… or synchronous=…, repeatable", func(pair string) error {
		key, value, found := strings.Cut(pair, "=")
		if !found || (key != "journal_mode" && key != "synchronous") {
			return errors.New("must be journal_mode=… or synchronous=…")
		}
		parsed.sqlitePragmas[key] = value
		return nil
	})
	if err := flags.Parse(words); err != nil {
		return settings{}, err
	}
	if flags.NArg() > 0 {
		return settings{}, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	return parsed, nil
}

// decode reads a JSON value as the server's dynamic configuration wants it: whole numbers as int.
func decode(text string) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	number, isNumber := value.(json.Number)
	if !isNumber {
		return value, nil
	}
	if whole, err := number.Int64(); err == nil {
		return int(whole), nil
	}
	return number.Float64()
}
