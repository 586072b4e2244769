package main

import (
	"reflect"
	"testing"
)

func TestDefaultsAreTheHosts(t *testing.T) {
	parsed, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.ip != "127.0.0.1" || parsed.namespace != "default" || parsed.headless {
		t.Errorf("unexpected defaults: %+v", parsed)
	}
	if parsed.dynamicConfig["system.enableActivityEagerExecution"] != true ||
		parsed.dynamicConfig["history.transferProcessorMaxPollRPS"] != 2000 {
		t.Errorf("the gates are not open: %v", parsed.dynamicConfig)
	}
	if parsed.dynamicConfig["frontend.enableServerVersionCheck"] != false {
		t.Errorf("the server tells its makers of itself: %v", parsed.dynamicConfig)
	}
	if parsed.sqlitePragmas["journal_mode"] != "WAL" || parsed.sqlitePragmas["synchronous"] != "NORMAL" {
		t.Errorf("unexpected pragmas: %v", parsed.sqlitePragmas)
	}
}

func TestTheFlagsOfStartDevAreTaken(t *testing.T) {
	parsed, err := parse([]string{
		"server", "start-dev", "--ip", "127.0.0.2", "--port", "7000", "--headless",
		"--log-level", "warn", "--log-format", "json", "--db-filename", "a b.db",
		"--dynamic-config-value", `history.timerProcessorMaxTimeShift="50ms"`,
		"--dynamic-config-value", "history.transferProcessorMaxPollRPS=10",
		"--sqlite-pragma", "synchronous=FULL",
	})
	if err != nil {
		t.Fatal(err)
	}
	if parsed.ip != "127.0.0.2" || parsed.port != 7000 || !parsed.headless || parsed.dbFilename != "a b.db" {
		t.Errorf("unexpected settings: %+v", parsed)
	}
	// A number is an int: the server takes no other kind for its integer settings.
	if parsed.dynamicConfig["history.transferProcessorMaxPollRPS"] != 10 ||
		parsed.dynamicConfig["history.timerProcessorMaxTimeShift"] != "50ms" {
		t.Errorf("unexpected values: %v", parsed.dynamicConfig)
	}
	if !reflect.DeepEqual(parsed.sqlitePragmas, map[string]string{"journal_mode": "WAL", "synchronous": "FULL"}) {
		t.Errorf("unexpected pragmas: %v", parsed.sqlitePragmas)
	}
}

func TestWhatIsNotAFlagIsRefused(t *testing.T) {
	for _, args := range [][]string{
		{"workflow", "list"},
		{"--nonsense"},
		{"--dynamic-config-value", "no-equals-sign"},
		{"--dynamic-config-value", "key={"},
		{"--sqlite-pragma", "foreign_keys=off"},
		{"--log-format", "pretty"},
		{"--port", "many"},
	} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}
