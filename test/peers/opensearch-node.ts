import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { installOnce, isInstalled } from '../../bench/install-once.ts';
import { jdkOf, missingJdk } from '../../bench/jdk.ts';
import { mavenLock } from '../../bench/lucene.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { parseOpenSearchAddress } from '../../src/stores/opensearch/opensearch-address.ts';
import { OpenSearchClient } from '../../src/stores/opensearch/opensearch-client.ts';
import { peerCache } from '../helpers/peers.ts';

const run = promisify(execFile);

/** `TRAWL_OPENSEARCH_VERSION` names another. */
export const OPENSEARCH_VERSION = process.env.TRAWL_OPENSEARCH_VERSION ?? '2.19.1';
const IS_2 = Number.parseInt(OPENSEARCH_VERSION, 10) < 3;
/** Of the JDK: OpenSearch 3 needs Java 21. */
const JAVA_VERSION = IS_2 ? 17 : 21;
const PROGRAM = join(packageRoot, 'test', 'peers', 'OpenSearchNode.java');
const MAVEN_COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies';

/** The last four are optional for the first, which does not start without them. */
const JARS = [
  ['org.opensearch', 'opensearch', OPENSEARCH_VERSION],
  ['org.opensearch.plugin', 'transport-netty4-client', OPENSEARCH_VERSION],
  ['org.opensearch.plugin', 'lang-painless', OPENSEARCH_VERSION],
  // Of the version of log4j-api, on which OpenSearch depends.
  ['org.apache.logging.log4j', 'log4j-core', IS_2 ? '2.21.0' : '2.25.4'],
  ['org.locationtech.jts', 'jts-core', '1.15.0'],
  ['org.locationtech.spatial4j', 'spatial4j', '0.7'],
] as const;

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>trawl</groupId><artifactId>opensearch-node</artifactId><version>1</version><dependencies>
${JARS.map(([group, artifact, version]) => `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version></dependency>`).join('\n')}
</dependencies></project>
`;

/** The folder of the jars, from Maven Central, and of the home of the nodes. */
function nodeFolder(): string {
  return join(peerCache(), `opensearch-${OPENSEARCH_VERSION}`);
}

/** For the `skip` option of a test: false if the jars are installed, else the reason. */
export function withoutOpenSearch(): string | false {
  return isInstalled(nodeFolder())
    ? false
    : `OpenSearch ${OPENSEARCH_VERSION} is not installed: run npm run check -- peers (needs a JDK of version ${JAVA_VERSION} or newer, and Maven)`;
}

/** Installs the jars of OpenSearch with Maven, unless they are in the cache. */
export async function installOpenSearch(note: (text: string) => void): Promise<void> {
  if (withoutOpenSearch() === false) return;
  if (jdkOf(JAVA_VERSION) === undefined)
    throw new Error(`OpenSearch ${OPENSEARCH_VERSION}: ${missingJdk(JAVA_VERSION)}.`);
  const folder = nodeFolder();
  await installOnce(folder, { note, lock: mavenLock(peerCache()) }, async () => {
    note(`Installing OpenSearch ${OPENSEARCH_VERSION} into ${folder} (once)`);
    mkdirSync(join(folder, 'home', 'config'), { recursive: true });
    writeFileSync(join(folder, 'pom.xml'), POM);
    const lib = join(folder, 'lib');
    await run('mvn', ['--batch-mode', '--quiet', MAVEN_COPY, `-DoutputDirectory=${lib}`], { cwd: folder });
  });
}

/** The command line of a node. */
export function nodeCommand({
  data,
  port,
  transport,
  transports,
  stays,
}: {
  /** Folder of its data. */
  readonly data: string;
  readonly port: number;
  /** Its port to the other nodes, and those of all nodes. */
  readonly transport: number;
  readonly transports: readonly number[];
  /** Whether it runs until a signal ends it, not until its standard input closes. */
  readonly stays: boolean;
}): string[] {
  const home = nodeFolder();
  const java = [
    jdkOf(JAVA_VERSION)?.java ?? 'java',
    '-Xmx512m',
    '-cp',
    join(home, 'lib', '*'),
    PROGRAM,
    join(home, 'home'),
    data,
  ];
  return [...java, String(port), String(transport), transports.join(','), ...(stays ? ['stays'] : [])];
}

/** A node of OpenSearch on the loopback address, with the language of scripts and nothing else. */
export class OpenSearchNode {
  readonly port: number;
  readonly #folder: string;
  readonly #transport: number;
  #child: ChildProcess | undefined;

  private constructor(folder: string, port: number, transport: number) {
    this.#folder = folder;
    this.port = port;
    this.#transport = transport;
  }

  static async start(): Promise<OpenSearchNode> {
    const folder = await mkdtemp(join(tmpdir(), 'trawl-opensearch-'));
    const node = new OpenSearchNode(folder, await freePort(), await freePort());
    await node.begin();
    return node;
  }

  /** Starts the node, again with its data after `kill`. */
  async begin(): Promise<void> {
    const [transport, data] = [this.#transport, this.#folder];
    const [java, ...args] = nodeCommand({ data, port: this.port, transport, transports: [transport], stays: false });
    const child = spawn(java!, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child = child;
    let tail = '';
    child.stderr.on('data', (chunk: Buffer) => {
      tail = `${tail}${chunk}`.slice(-2_000);
    });
    await new Promise<void>((resolve, reject) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        if (line === 'ready') resolve();
      });
      child.once('close', () => reject(new Error(`OpenSearch ended: ${tail}`)));
    });
  }

  address(index: string): string {
    return `opensearch://127.0.0.1:${this.port}/${index}`;
  }

  client(): Promise<OpenSearchClient> {
    return OpenSearchClient.connect(parseOpenSearchAddress(this.address('any')));
  }

  /** A request that Trawl does not make. */
  async request(method: string, path: string, body?: unknown): Promise<unknown> {
    const reply = await fetch(`http://127.0.0.1:${this.port}${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${method} ${path}: ${text}`);
    return JSON.parse(text);
  }

  async kill(): Promise<void> {
    const child = this.#child!;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'close');
    child.kill('SIGKILL');
    await ended;
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}
