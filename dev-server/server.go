package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/google/uuid"
	uiserver "github.com/temporalio/ui-server/v2/server"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	uioptions "github.com/temporalio/ui-server/v2/server/server_options"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

const (
	loopback    = "127.0.0.1"
	clusterName = "active"
	storeName   = "sqlite"
)

// services are what one Temporal server is made of, each with a port of its own.
var services = []primitives.ServiceName{
	primitives.FrontendService,
	primitives.HistoryService,
	primitives.MatchingService,
	primitives.WorkerService,
}

type devServer struct {
	temporal temporal.Server
	ui       *uiserver.Server
}

// newServer makes the database if it is not there, and everything but the listening.
func newServer(settings settings) (*devServer, error) {
	database, err := openDatabase(settings)
	if err != nil {
		return nil, err
	}
	ports, err := choosePorts(settings.port)
	if err != nil {
		return nil, err
	}
	logger := log.NewZapLogger(log.BuildZapLogger(log.Config{Level: settings.logLevel, Format: "json"}))
	dynamic := dynamicconfig.StaticClient{}
	for key, value := range settings.dynamicConfig {
		dynamic[dynamicconfig.Key(key)] = value
	}
	server, err := temporal.NewServer(
		temporal.WithConfig(configFor(settings, database, ports)),
		temporal.ForServices(temporal.DefaultServices),
		// One process, known ports: no gossip between services that could not find each other otherwise.
		temporal.WithStaticHosts(hostsOf(ports)),
		temporal.WithLogger(logger),
		temporal.WithDynamicConfigClient(dynamic),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper {
			return authorization.NewNoopClaimMapper()
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("the server cannot be put together: %w", err)
	}
	return &devServer{temporal: server, ui: uiFor(settings)}, nil
}

func (server *devServer) start() error {
	if err := server.temporal.Start(); err != nil {
		return fmt.Errorf("the server does not start: %w", err)
	}
	if server.ui != nil {
		// It ends the process itself when its port is taken.
		go func() { _ = server.ui.Start() }()
	}
	return nil
}

func (server *devServer) stop() error {
	if server.ui != nil {
		server.ui.Stop()
	}
	return server.temporal.Stop()
}

// openDatabase sets the schema up in a new file and registers the namespace. In memory the plugin does the former.
func openDatabase(settings settings) (*config.SQL, error) {
	database := &config.SQL{
		PluginName:        sqliteplugin.PluginName,
		DatabaseName:      settings.dbFilename,
		ConnectAttributes: map[string]string{"mode": "rwc"},
	}
	if settings.dbFilename == "" {
		database.DatabaseName = uuid.NewString()
		database.ConnectAttributes = map[string]string{"mode": "memory", "cache": "shared"}
	}
	for pragma, value := range settings.sqlitePragmas {
		database.ConnectAttributes["_"+pragma] = value
	}
	if settings.dbFilename != "" {
		if _, err := os.Stat(settings.dbFilename); os.IsNotExist(err) {
			if err := setUpFile(settings.dbFilename, database); err != nil {
				return nil, err
			}
		} else if err != nil {
			return nil, err
		}
	}
	namespace, err := sqlite.NewNamespaceConfig(clusterName, settings.namespace, false, nil)
	if err != nil {
		return nil, err
	}
	if err := sqlite.CreateNamespaces(database, namespace); err != nil {
		return nil, fmt.Errorf("the database %s cannot be used: %w", settings.dbFilename, err)
	}
	return database, nil
}

// setUpFile makes the schema beside its place and moves it there: a file that exists is whole, also when the process
// was killed in between.
func setUpFile(path string, database *config.SQL) error {
	fresh := *database
	fresh.DatabaseName = path + ".new"
	// Without the write-ahead log: what is moved must be one file.
	fresh.ConnectAttributes = map[string]string{"mode": "rwc"}
	if err := os.Remove(fresh.DatabaseName); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := sqlite.SetupSchema(&fresh); err != nil {
		return fmt.Errorf("the database %s cannot be made: %w", path, err)
	}
	return os.Rename(fresh.DatabaseName, path)
}

func choosePorts(frontend int) (map[primitives.ServiceName]int, error) {
	ports := map[primitives.ServiceName]int{}
	for _, service := range services {
		if service == primitives.FrontendService {
			ports[service] = frontend
			continue
		}
		// Held until all are chosen, so that no two are the same.
		listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		ports[service] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

func hostsOf(ports map[primitives.ServiceName]int) map[primitives.ServiceName]static.Hosts {
	hosts := map[primitives.ServiceName]static.Hosts{}
	for service, port := range ports {
		hosts[service] = static.SingleLocalHost(net.JoinHostPort(loopback, strconv.Itoa(port)))
	}
	return hosts
}

func configFor(settings settings, database *config.SQL, ports map[primitives.ServiceName]int) *config.Config {
	frontend := net.JoinHostPort(loopback, strconv.Itoa(settings.port))
	built := &config.Config{
		Persistence: config.Persistence{
			DefaultStore:     storeName,
			VisibilityStore:  storeName,
			NumHistoryShards: 1,
			DataStores:       map[string]config.DataStore{storeName: {SQL: database}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		PublicClient:        config.PublicClient{HostPort: frontend},
		Services:            map[string]config.Service{},
	}
	built.Global.Membership = config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: loopback}
	built.Archival.History.State = "disabled"
	built.Archival.Visibility.State = "disabled"
	built.NamespaceDefaults.Archival.History.State = "disabled"
	built.NamespaceDefaults.Archival.Visibility.State = "disabled"
	for service, port := range ports {
		rpc := config.RPC{GRPCPort: port, BindOnIP: loopback}
		if service == primitives.FrontendService {
			rpc.BindOnIP = settings.ip
		}
		built.Services[string(service)] = config.Service{RPC: rpc}
	}
	return built
}

func uiFor(settings settings) *uiserver.Server {
	if settings.headless {
		return nil
	}
	return uiserver.NewServer(uioptions.WithConfigProvider(&uiconfig.Config{
		Host:                settings.ip,
		Port:                settings.uiPort,
		TemporalGRPCAddress: net.JoinHostPort(settings.ip, strconv.Itoa(settings.port)),
		EnableUI:            true,
		CORS:                uiconfig.CORS{CookieInsecure: true},
		HideLogs:            true,
	}))
}
