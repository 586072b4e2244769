// Temporal's test server on the loopback interface. Its own program listens on every interface, without a key.
import io.grpc.Server;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.temporal.internal.testservice.GRPCServerHelper;
import io.temporal.internal.testservice.TestServicesStarter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Arrays;

/** Arguments as of the program in whose place it stands: PORT [--enable-time-skipping]. */
public final class InMemoryServer {
  public static void main(String[] args) throws Exception {
    int port = Integer.parseInt(args[0]);
    boolean skipsTime = Arrays.asList(args).contains("--enable-time-skipping");
    TestServicesStarter services = new TestServicesStarter(!skipsTime, 0);
    InetAddress loopback = InetAddress.getByAddress("localhost", new byte[] {127, 0, 0, 1});
    NettyServerBuilder builder =
        NettyServerBuilder.forAddress(new InetSocketAddress(loopback, port));
    GRPCServerHelper.registerServicesAndHealthChecks(services.getServices(), builder);
    Server server = builder.build().start();
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  server.shutdownNow();
                  services.close();
                }));
    server.awaitTermination();
  }
}
