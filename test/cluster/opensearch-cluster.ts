import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../cli/free-port.ts';
import { nodeCommand } from '../peers/opensearch-node.ts';
import { Program } from './program.ts';

const START_MS = 300_000;

/** A node of the cluster: it can hold rows, coordinate searches, and manage the cluster. */
export interface ClusterNode {
  readonly program: Program;
  /** What the cluster calls it. */
  readonly name: string;
  readonly port: number;
}

/** Real nodes of OpenSearch on the loopback address that form one cluster. */
export class OpenSearchCluster {
  readonly nodes: readonly ClusterNode[];

  private constructor(nodes: readonly ClusterNode[]) {
    this.nodes = nodes;
  }

  static async start(folder: string, { nodes: count }: { readonly nodes: number }): Promise<OpenSearchCluster> {
    const transports: number[] = [];
    const nodes: ClusterNode[] = [];
    for (let i = 0; i < count; i++) transports.push(await freePort());
    for (const [i, transport] of transports.entries()) {
      const data = join(folder, `node-${i}`);
      mkdirSync(data, { recursive: true });
      const port = await freePort();
      const command = nodeCommand({ data, port, transport, transports, stays: true });
      const program = new Program({
        name: `OpenSearch ${i}`,
        command,
        cwd: folder,
        log: join(folder, `node-${i}.log`),
      });
      nodes.push({ program, port, name: `node-${transport}` });
    }
    const cluster = new OpenSearchCluster(nodes);
    try {
      for (const { program } of nodes) program.start();
      await cluster.untilWhole();
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** Names all nodes, so that one that does not answer is passed over. */
  address(index: string): string {
    return `opensearch://${this.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${index}`;
  }

  /** Waits until all nodes are in the cluster, and every shard and copy is on one. A node that ends meanwhile is started again. */
  async untilWhole(): Promise<void> {
    for (const node of this.nodes) {
      await node.program.until(() => this.#isWhole(node), { ms: START_MS, pollMs: 500, restarts: true });
    }
  }

  /** A node that has a shard of an index. */
  async nodeWithShardOf(index: string): Promise<ClusterNode> {
    const shards = (await this.#get(`/_cat/shards/${index}?format=json`)) as { node: string }[];
    return this.nodes.find(({ name }) => shards.some(({ node }) => node === name))!;
  }

  /** Bytes of an index on the disks of all nodes, all copies together. */
  async diskBytes(index: string): Promise<number> {
    const stats = (await this.#get(`/${index}/_stats/store`)) as {
      _all: { total: { store: { size_in_bytes: number } } };
    };
    return stats._all.total.store.size_in_bytes;
  }

  async #get(path: string): Promise<unknown> {
    const reply = await fetch(`http://127.0.0.1:${this.nodes[0]!.port}${path}`);
    if (!reply.ok) throw new Error(`${path}: ${await reply.text()}`);
    return reply.json();
  }

  async #isWhole({ port }: ClusterNode): Promise<boolean> {
    try {
      const signal = AbortSignal.timeout(5_000);
      const reply = await fetch(`http://127.0.0.1:${port}/_cluster/health`, { signal });
      const health = (await reply.json()) as { status?: string; number_of_nodes?: number };
      return health.status === 'green' && health.number_of_nodes === this.nodes.length;
    } catch {
      return false;
    }
  }

  /** Resident bytes of each node. */
  memory(): Record<string, number> {
    return Object.fromEntries(this.nodes.map(({ program }, i) => [`node ${i + 1}`, program.residentBytes()]));
  }

  async stop(): Promise<void> {
    for (const { program } of this.nodes) await program.end('SIGKILL');
  }
}
