import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { peerCache } from '../helpers/peers.ts';
import { Program } from './program.ts';

const run = promisify(execFile);

const VERSION = '3.9.1';
const MAVEN_COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies';
const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>trawl</groupId><artifactId>kafka-node</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>${VERSION}</version></dependency>
</dependencies></project>
`;
/** Any 16 bytes. */
const CLUSTER_ID = 'dHJhd2wtdGVzdC1jbHVzdA';
export const KAFKA_PORT = 9092;
const START_MS = 90_000;

/** The folder of the jars, from Maven Central. */
export function kafkaFolder(): string {
  return join(peerCache(), `kafka-${VERSION}`);
}

/** Installs the jars with Maven, unless they are in the cache. @throws Error if Maven fails. */
export async function installKafka(note: (text: string) => void): Promise<void> {
  const folder = kafkaFolder();
  if (existsSync(join(folder, '.complete'))) return;
  note(`Installing Kafka ${VERSION} into ${folder} (once)`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'pom.xml'), POM);
  const lib = join(folder, 'lib');
  await run('mvn', ['--batch-mode', '--quiet', MAVEN_COPY, `-DoutputDirectory=${lib}`], { cwd: folder });
  writeFileSync(join(folder, '.complete'), '');
}

/** Starts a Kafka of one node without ZooKeeper, and waits until it listens. Its messages have at most 1 MB, its default. */
export async function startKafka(folder: string): Promise<Program> {
  const properties = join(folder, 'kafka.properties');
  const settings = {
    'process.roles': 'broker,controller',
    'node.id': '1',
    listeners: `PLAINTEXT://127.0.0.1:${KAFKA_PORT},CONTROLLER://127.0.0.1:${KAFKA_PORT + 1}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${KAFKA_PORT}`,
    'controller.listener.names': 'CONTROLLER',
    'controller.quorum.voters': `1@127.0.0.1:${KAFKA_PORT + 1}`,
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'log.dirs': join(folder, 'kafka'),
    'offsets.topic.replication.factor': '1',
    'offsets.topic.num.partitions': '1',
    'transaction.state.log.replication.factor': '1',
    'transaction.state.log.min.isr': '1',
  };
  writeFileSync(
    properties,
    Object.entries(settings)
      .map(([key, value]) => `${key}=${value}\n`)
      .join(''),
  );
  const java = ['java', '-Xmx384m', '-cp', join(kafkaFolder(), 'lib', '*')];
  await run(java[0]!, [...java.slice(1), 'kafka.tools.StorageTool', 'format', '-t', CLUSTER_ID, '-c', properties]);
  const log = join(folder, 'kafka.log');
  const kafka = new Program({ name: 'Kafka', command: [...java, 'kafka.Kafka', properties], cwd: folder, log });
  kafka.start();
  await kafka.until(() => listens(KAFKA_PORT), { ms: START_MS });
  return kafka;
}

/** Whether something listens at a port of the loopback address. */
export function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
