// A real Elasticsearch node without modules but its transport: for the tests that compare Trawl with it.
// Arguments: the home folder, the ports of HTTP and of the transport. Prints "ready"; ends when stdin closes.
import java.nio.file.Path;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.Node;

public class ElasticsearchNode {
    public static void main(String[] args) throws Exception {
        Path home = Path.of(args[0]);
        LogConfigurator.configureESLogging();
        Settings settings = Settings.builder()
            .put("path.home", home)
            .put("path.data", args[1])
            .put("path.logs", args[1])
            .put("node.name", "peer")
            .put("cluster.name", "peer")
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.port", args[2])
            .put("transport.port", args[3])
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        try (Node node = new Node(new Environment(settings, home.resolve("config")))) {
            node.start();
            System.out.println("ready");
            while (System.in.read() != -1) {
                // Waits for the end of the tests.
            }
        }
        System.exit(0);
    }
}
