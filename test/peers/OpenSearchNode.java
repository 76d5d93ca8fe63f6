// A real OpenSearch node with its transport and the language of its scripts, and nothing else: for the tests of indexes in OpenSearch.
// Arguments: the home folder, the folder of its data, the ports of HTTP and of the transport, the ports of the transports of all nodes
// of the cluster, separated by commas. Prints "ready"; ends when stdin closes, or, with the further argument "stays", by a signal, at which it
// leaves the cluster as OpenSearch's own program does.
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.opensearch.Version;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.Node;
import org.opensearch.plugins.PluginInfo;

public class OpenSearchNode {
    static class PeerNode extends Node {
        @SuppressWarnings({"rawtypes", "unchecked"})
        PeerNode(Environment environment) {
            super(environment, (Collection) plugins(), false);
        }

        /** OpenSearch 2 takes classes. OpenSearch 3 has them under other names, and takes their descriptions. */
        static List<Object> plugins() {
            List<Object> plugins = new ArrayList<>();
            for (String name : List.of("org.opensearch.transport.Netty4", "org.opensearch.painless.Painless")) {
                try {
                    plugins.add(Class.forName(name + "Plugin"));
                } catch (ClassNotFoundException error) {
                    String module = name + "ModulePlugin";
                    plugins.add(new PluginInfo(module, "", "", Version.CURRENT, "21", module, null, List.of(), false));
                }
            }
            return plugins;
        }
    }

    public static void main(String[] args) throws Exception {
        Path home = Path.of(args[0]);
        String name = "node-" + args[3];
        List<String> ports = List.of(args[4].split(","));
        Settings settings = Settings.builder()
            .put("path.home", home)
            .put("path.data", args[1])
            .put("path.logs", args[1])
            .put("node.name", name)
            .put("cluster.name", "peer")
            .putList("discovery.seed_hosts", ports.stream().map(port -> "127.0.0.1:" + port).toList())
            .putList("cluster.initial_cluster_manager_nodes", ports.stream().map(port -> "node-" + port).toList())
            .put("network.host", "127.0.0.1")
            .put("http.port", args[2])
            .put("transport.port", args[3])
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        try (Node node = new PeerNode(new Environment(settings, home.resolve("config")))) {
            node.start();
            System.out.println("ready");
            if (args.length > 5) {
                Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                    try {
                        node.close();
                    } catch (java.io.IOException error) {
                        error.printStackTrace();
                    }
                }));
                Thread.currentThread().join();
            }
            while (System.in.read() != -1) {
                // Waits for the end of the tests.
            }
        }
        System.exit(0);
    }
}
