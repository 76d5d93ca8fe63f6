import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { installOnce, isInstalled } from '../../bench/install-once.ts';
import { jdkOf, missingJdk } from '../../bench/jdk.ts';
import { mavenLock } from '../../bench/lucene.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { peerCache } from '../helpers/peers.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const run = promisify(execFile);

const VERSION = '8.17.1';
const JAVA_VERSION = 17;
const PROGRAM = join(packageRoot, 'test', 'peers', 'ElasticsearchNode.java');
const MAVEN_COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies';

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>trawl</groupId><artifactId>elasticsearch-node</artifactId><version>1</version><dependencies>
<dependency><groupId>org.elasticsearch</groupId><artifactId>elasticsearch</artifactId><version>${VERSION}</version></dependency>
<dependency><groupId>org.elasticsearch.plugin</groupId><artifactId>transport-netty4</artifactId><version>${VERSION}</version></dependency>
</dependencies></project>
`;

/** Elasticsearch finds its transport among the modules of its home folder, by this file. */
const DESCRIPTOR = `description=Netty 4 based transport implementation
version=${VERSION}
name=transport-netty4
java.version=17
elasticsearch.version=${VERSION}
classname=org.elasticsearch.transport.netty4.Netty4Plugin
`;

/** The folder of the jars, from Maven Central, and of the home of the nodes. */
function nodeFolder(): string {
  return join(peerCache(), `elasticsearch-${VERSION}`);
}

/** For the `skip` option of a test: false if the jars are installed, else the reason. */
export function withoutElasticsearch(): string | false {
  return isInstalled(nodeFolder())
    ? false
    : `Elasticsearch ${VERSION} is not installed: run npm run check -- peers (needs a JDK of version 17 or newer, and Maven)`;
}

/** Installs the jars of Elasticsearch with Maven, unless they are in the cache. */
export async function installElasticsearch(note: (text: string) => void): Promise<void> {
  if (withoutElasticsearch() === false) return;
  if (jdkOf(JAVA_VERSION) === undefined) throw new Error(`Elasticsearch ${VERSION}: ${missingJdk(JAVA_VERSION)}.`);
  await installOnce(nodeFolder(), { note, lock: mavenLock(peerCache()) }, () => installJars(nodeFolder(), note));
}

async function installJars(folder: string, note: (text: string) => void): Promise<void> {
  const [all, modules] = [join(folder, 'all'), join(folder, 'home', 'modules', 'transport-netty4')];
  note(`Installing Elasticsearch ${VERSION} into ${folder} (once)`);
  for (const each of [all, modules, join(folder, 'core'), join(folder, 'home', 'config')])
    mkdirSync(each, { recursive: true });
  writeFileSync(join(folder, 'pom.xml'), POM);
  await run('mvn', ['--batch-mode', '--quiet', MAVEN_COPY, `-DoutputDirectory=${all}`], { cwd: folder });
  writeFileSync(join(modules, 'plugin-descriptor.properties'), DESCRIPTOR);
  for (const jar of readdirSync(all)) {
    copyFileSync(join(all, jar), join(jar.includes('netty') ? modules : join(folder, 'core'), jar));
  }
  rmSync(all, { recursive: true });
}

/** Starts a node, which ends with the test. Resolves to its URL. */
export async function startElasticsearch(t: TestContext): Promise<string> {
  const [http, transport] = [await freePort(), await freePort()];
  const folder = nodeFolder();
  const modules = ['--module-path', join(folder, 'core'), '--add-modules', 'ALL-MODULE-PATH,jdk.net'];
  const data = await tempFolder(t);
  const child = spawn(
    jdkOf(JAVA_VERSION)?.java ?? 'java',
    ['-Xmx512m', ...modules, PROGRAM, join(folder, 'home'), data, String(http), String(transport)],
    { stdio: ['pipe', 'pipe', 'pipe'] },
  );
  const ended = new Promise<void>((resolve) => {
    child.on('close', () => resolve());
  });
  t.after(async () => {
    child.stdin.end();
    await ended;
  });
  let tail = '';
  child.stderr.on('data', (chunk: Buffer) => {
    tail = `${tail}${chunk}`.slice(-2_000);
  });
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line === 'ready') resolve();
    });
    void ended.then(() => reject(new Error(`Elasticsearch ended: ${tail}`)));
  });
  return `http://127.0.0.1:${http}`;
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

/** The total and the passages are equal, and each score but for its rounding. */
export function assertAlike(text: string, expected: string, what: string): void {
  const [ours, theirs] = [text, expected].map(
    (reply) => (JSON.parse(reply) as { hits: { total: object; hits: { _id: string; _score: number }[] } }).hits,
  );
  const scores = new Map(ours!.hits.map(({ _id, _score }) => [_id, _score]));
  assert.deepEqual(ours!.total, theirs!.total, what);
  assert.deepEqual([...scores.keys()].sort(), theirs!.hits.map(({ _id }) => _id).sort(), what);
  for (const { _id, _score } of theirs!.hits) {
    assert.ok(Math.abs(scores.get(_id)! - _score) <= 1e-5 * _score, `${_id}: ${scores.get(_id)}, ${_score} in ${what}`);
  }
}
