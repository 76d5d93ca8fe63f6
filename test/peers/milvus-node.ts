import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../src/base/package-root.ts';
import { parseMilvusAddress } from '../../src/stores/milvus/milvus-address.ts';
import { MilvusClient } from '../../src/stores/milvus/milvus-client.ts';
import { inNamespace, withoutNamespace } from '../cluster/namespace.ts';
import { isMilvusInstalled, milvusPython } from './install-milvus.ts';

const SUPERVISOR = fileURLToPath(new URL('./milvus-supervisor.js', import.meta.url));
/** Unpacking the program alone takes minutes on a busy machine. */
const START_MS = 300_000;

/** For the `skip` option of a test: false if Milvus can be run, else the reason. */
export function withoutMilvus(): string | false {
  if (!isMilvusInstalled()) return 'Milvus is not installed: run npm run check -- peers';
  const missing = withoutNamespace();
  return missing === undefined
    ? false
    : `Milvus listens on all addresses and is run in a network of its own; missing: ${missing}`;
}

/** A standalone Milvus, reached through a port on the loopback address. */
export class MilvusNode {
  readonly port: number;
  readonly #folder: string;
  readonly #supervisor: ChildProcess;
  readonly #relay: Server;
  readonly #sockets: Set<Socket>;

  private constructor(folder: string, supervisor: ChildProcess, relay: Server, sockets: Set<Socket>) {
    this.port = (relay.address() as AddressInfo).port;
    this.#folder = folder;
    this.#supervisor = supervisor;
    this.#relay = relay;
    this.#sockets = sockets;
  }

  /** The working folder of Milvus, with its data. */
  get dataFolder(): string {
    return join(this.#folder, 'data');
  }

  /** Variables with the password of Milvus's first user, for a file or for `TRAWL_MILVUS_CREDENTIALS`. */
  get environment(): { readonly TRAWL_MILVUS_CREDENTIALS: string } {
    return { TRAWL_MILVUS_CREDENTIALS: `milvus://root:Milvus@127.0.0.1:${this.port}` };
  }

  static async start(): Promise<MilvusNode> {
    const folder = await mkdtemp(join(tmpdir(), 'trawl-milvus-'));
    const socket = join(folder, 's');
    const script = join(packageRoot, 'test', 'peers', 'milvus_start.py');
    const args = [SUPERVISOR, milvusPython(), script, join(folder, 'data'), socket, join(folder, 'log')];
    const [command, ...rest] = inNamespace([process.execPath, ...args]);
    const supervisor = spawn(command!, rest, {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    await once(supervisor.stdout!, 'data');
    const sockets = new Set<Socket>();
    // Without Nagle's algorithm, which holds the second of two replies back for 40 ms.
    const relay = createServer({ noDelay: true }, (client) => {
      const server = connect(socket);
      for (const [from, to] of [
        [client, server],
        [server, client],
      ] as const) {
        sockets.add(from);
        from.pipe(to);
        from.on('error', () => to.destroy());
        from.on('close', () => {
          sockets.delete(from);
          to.destroy();
        });
      }
    }).listen(0, '127.0.0.1');
    await once(relay, 'listening');
    const node = new MilvusNode(folder, supervisor, relay, sockets);
    Object.assign(process.env, node.environment);
    await node.tell('start');
    try {
      await node.untilReady();
      return node;
    } catch (error) {
      await node.stop();
      throw error;
    }
  }

  /**
   * `kill` ends Milvus at once, `start` starts it again with its data, `freeze` stops it without ending it, `thaw` lets it go on.
   * Resolves when that has happened; Milvus answers calls later than it starts (`untilReady`).
   */
  async tell(command: 'start' | 'kill' | 'freeze' | 'thaw'): Promise<void> {
    this.#supervisor.stdin!.write(`${command}\n`);
    await once(this.#supervisor.stdout!, 'data');
  }

  address(collection: string): string {
    return `milvus://127.0.0.1:${this.port}/default/${collection}`;
  }

  client(): Promise<MilvusClient> {
    return MilvusClient.connect(parseMilvusAddress(this.address('any')));
  }

  /** Waits until Milvus answers calls. */
  async untilReady(): Promise<void> {
    const end = performance.now() + START_MS;
    for (;;) {
      try {
        const client = await this.client();
        try {
          await client.describe('any');
          return;
        } finally {
          await client.close();
        }
      } catch (error) {
        if (performance.now() > end) {
          const log = readFileSync(join(this.#folder, 'log'), 'utf8').slice(-2_000);
          throw new Error(`Milvus did not start: ${log}`, { cause: error });
        }
        await pause(500);
      }
    }
  }

  async stop(): Promise<void> {
    this.#supervisor.stdin!.end();
    if (this.#supervisor.exitCode === null) await once(this.#supervisor, 'exit');
    this.#relay.close();
    for (const socket of this.#sockets) socket.destroy();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
