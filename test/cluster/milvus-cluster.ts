import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';
import { parseMilvusAddress } from '../../src/stores/milvus/milvus-address.ts';
import { MilvusClient } from '../../src/stores/milvus/milvus-client.ts';
import { filesName } from '../../src/stores/published/find-publication.ts';
import { milvusPython } from '../peers/install-milvus.ts';
import { KAFKA_PORT, listens, startKafka } from './kafka.ts';
import { Program } from './program.ts';

/** Unpacking the program alone takes minutes on a busy machine. */
const START_MS = 300_000;
const ETCD_PORT = 2379;
const PROXY_PORT = 19_530;
/** The first of the ports at which the processes report metrics. */
const METRICS_PORT = 9100;
/** etcd syncs every change; on the disk of a busy machine that takes so long that leases end. Its data are a few MB. */
const MEMORY_FOLDER = '/dev/shm';
/** All that a cluster needs beside its query nodes, in one process. */
const MIXTURE = ['rootcoord', 'querycoord', 'datacoord', 'indexcoord', 'proxy', 'datanode', 'indexnode'];

/** A query node: it holds rows in memory, and searches them. */
export interface QueryNode {
  readonly program: Program;
  readonly metricsPort: number;
}

/**
 * A Milvus of several processes over etcd and Kafka: two query nodes, and one process with everything else. They listen on all addresses, so
 * it is started in a network namespace (scripts/checks/cluster.mjs).
 */
export class MilvusCluster {
  readonly queryNodes: readonly QueryNode[];
  readonly mixture: Program;
  readonly etcd: Program;
  readonly kafka: Program;
  /** Variables with the password of Milvus's first user. */
  readonly environment = { TRAWL_MILVUS_CREDENTIALS: `milvus://root:Milvus@127.0.0.1:${PROXY_PORT}` } as const;

  readonly #metadata: string;

  private constructor(parts: Pick<MilvusCluster, 'queryNodes' | 'mixture' | 'etcd' | 'kafka'>, metadata: string) {
    this.#metadata = metadata;
    this.queryNodes = parts.queryNodes;
    this.mixture = parts.mixture;
    this.etcd = parts.etcd;
    this.kafka = parts.kafka;
  }

  static async start(folder: string, { queryNodes: count }: { readonly queryNodes: number }): Promise<MilvusCluster> {
    const started: Program[] = [];
    const metadata = mkdtempSync(join(existsSync(MEMORY_FOLDER) ? MEMORY_FOLDER : folder, 'trawl-etcd-'));
    try {
      const etcd = startEtcd(folder, metadata);
      started.push(etcd);
      await etcd.until(() => listens(ETCD_PORT), { ms: START_MS });
      const kafka = await startKafka(folder);
      started.push(kafka);
      const mixture = milvusProcess(folder, { name: 'mixture', port: METRICS_PORT });
      mixture.start();
      started.push(mixture);
      // It unpacks the program, which the others use.
      await mixture.until(() => listens(PROXY_PORT), { ms: START_MS });
      const queryNodes: QueryNode[] = [];
      for (let i = 0; i < count; i++) {
        const metricsPort = METRICS_PORT + 1 + i;
        const program = milvusProcess(folder, { name: `querynode${i}`, port: metricsPort });
        program.start();
        started.push(program);
        await program.until(() => isHealthy(metricsPort), { ms: START_MS });
        queryNodes.push({ program, metricsPort });
      }
      const cluster = new MilvusCluster({ queryNodes, mixture, etcd, kafka }, metadata);
      Object.assign(process.env, cluster.environment);
      await mixture.until(() => cluster.answers(), { ms: START_MS });
      return cluster;
    } catch (error) {
      for (const program of started.reverse()) await program.end('SIGKILL');
      rmSync(metadata, { recursive: true, force: true });
      throw error;
    }
  }

  address(collection: string): string {
    return `milvus://127.0.0.1:${PROXY_PORT}/default/${collection}`;
  }

  client(): Promise<MilvusClient> {
    return MilvusClient.connect(parseMilvusAddress(this.address('any')));
  }

  async answers(): Promise<boolean> {
    try {
      const client = await this.client();
      await client.describe('any').finally(() => client.close());
      return true;
    } catch {
      return false;
    }
  }

  /**
   * Waits until every query node holds a copy of the same segments. One that ends meanwhile is started again: Milvus ends a process that
   * lost its lease.
   */
  async untilLoaded(): Promise<void> {
    await this.#untilHeld((held) => held[0]! > 0 && held.every((segments) => segments === held[0]));
  }

  /** Waits until every query node holds segments, not all the same. */
  async untilDivided(): Promise<void> {
    await this.#untilHeld((held) => held.every((segments) => segments > 0));
  }

  /** Waits until the query nodes are up, and hold nothing. */
  async untilEmpty(): Promise<void> {
    await this.#untilHeld((held) => held.every((segments) => segments === 0));
    await this.untilUp();
  }

  /** Waits until the query nodes are up, whatever they hold: Milvus gives nothing back to one that was away. */
  async untilUp(): Promise<void> {
    for (const { program, metricsPort } of this.queryNodes) {
      await program.until(() => isHealthy(metricsPort), { ms: START_MS, restarts: true });
    }
  }

  async #untilHeld(isReached: (segments: readonly number[]) => boolean): Promise<void> {
    const check = async (): Promise<boolean> => {
      for (const { program } of this.queryNodes) if (!program.isRunning) program.start();
      return isReached(await Promise.all(this.queryNodes.map(({ metricsPort }) => heldSegments(metricsPort))));
    };
    await this.queryNodes[0]!.program.until(check, { ms: START_MS, pollMs: 500, restarts: true });
  }

  /** Drops a published index. */
  async drop(collection: string): Promise<void> {
    const client = await this.client();
    try {
      for (const name of [collection, filesName(collection)]) await client.drop(name);
    } finally {
      await client.close();
    }
  }

  /** Resident bytes of each process. */
  memory(): Record<string, number> {
    const programs = { etcd: this.etcd, Kafka: this.kafka, 'all other processes of Milvus': this.mixture };
    const nodes = this.queryNodes.map(({ program }, i) => [`query node ${i + 1}`, program] as const);
    return Object.fromEntries(
      [...Object.entries(programs), ...nodes].map(([name, program]) => [name, program.residentBytes()]),
    );
  }

  async stop(): Promise<void> {
    for (const { program } of this.queryNodes) await program.end('SIGKILL');
    for (const program of [this.mixture, this.kafka, this.etcd]) await program.end('SIGKILL');
    rmSync(this.#metadata, { recursive: true, force: true });
  }
}

function startEtcd(folder: string, data: string): Program {
  const [client, peer] = [`http://127.0.0.1:${ETCD_PORT}`, `http://127.0.0.1:${ETCD_PORT + 1}`];
  const options = {
    'data-dir': data,
    'listen-client-urls': client,
    'advertise-client-urls': client,
    'listen-peer-urls': peer,
    'initial-advertise-peer-urls': peer,
    'initial-cluster': `default=${peer}`,
  };
  const command = ['etcd', ...Object.entries(options).map(([name, value]) => `--${name}=${value}`)];
  const etcd = new Program({ name: 'etcd', command, cwd: folder, log: join(folder, 'etcd.log') });
  etcd.start();
  return etcd;
}

function milvusProcess(folder: string, { name, port }: { name: string; port: number }): Program {
  const data = join(folder, 'milvus');
  const run = join(folder, `run-${name}`);
  mkdirSync(run, { recursive: true });
  const role =
    name === 'mixture'
      ? ['run', 'mixture', ...MIXTURE.map((part) => `-${part}`)]
      : ['run', 'querynode', '-alias', name];
  return new Program({
    name: `Milvus (${name})`,
    command: [milvusPython(), join(packageRoot, 'test', 'peers', 'milvus_start.py'), data, ...role],
    cwd: folder,
    // Values of milvus.yaml.
    env: {
      DEPLOY_MODE: 'DISTRIBUTED',
      METRICS_PORT: String(port),
      MILVUS_RUN_DIR: run,
      ETCD_USE_EMBED: 'false',
      ETCD_ENDPOINTS: `127.0.0.1:${ETCD_PORT}`,
      MQ_TYPE: 'kafka',
      KAFKA_BROKERLIST: `127.0.0.1:${KAFKA_PORT}`,
      COMMON_STORAGETYPE: 'local',
      LOCALSTORAGE_PATH: join(folder, 'storage'),
    },
    log: join(folder, `${name}.log`),
  });
}

async function isHealthy(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(2_000) })).ok;
  } catch {
    return false;
  }
}

/** Sealed segments in the memory of a query node, by its metrics; 0 if it does not answer. */
async function heldSegments(port: number): Promise<number> {
  try {
    const reply = await fetch(`http://127.0.0.1:${port}/metrics`, { signal: AbortSignal.timeout(2_000) });
    let segments = 0;
    for (const [, count] of (await reply.text()).matchAll(
      /^milvus_querynode_segment_num\{[^}]*segment_state="Sealed"[^}]*\} (\d+)/gm,
    )) {
      segments += Number(count);
    }
    return segments;
  } catch {
    return 0;
  }
}
