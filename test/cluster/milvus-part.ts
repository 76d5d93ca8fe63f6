import { spawnSync } from 'node:child_process';
import { installMilvus, milvusFolder } from '../peers/install-milvus.ts';
import { installKafka, kafkaFolder } from './kafka.ts';
import { withoutNamespace } from './namespace.ts';
import type { ClusterPart } from './parts.ts';

const has = (program: string, ...args: string[]): boolean => spawnSync(program, args).status === 0;

/** Milvus with several query nodes: etcd for its metadata, and Kafka for its log. */
export const milvusPart: ClusterPart = {
  name: 'milvus',
  async prepare(note) {
    const missing: string[] = [];
    if (!has('etcd', '--version')) missing.push('etcd (Debian: apt-get install etcd-server)');
    const hasJava = has('javac', '-version');
    if (!hasJava) missing.push('a JDK, for Kafka (Debian: apt-get install openjdk-17-jdk-headless)');
    const hasMaven = has('mvn', '--version');
    if (!hasMaven) missing.push('Maven, which fetches Kafka (Debian: apt-get install maven)');
    if (!has('setpriv', '--version')) missing.push('setpriv (Debian: apt-get install util-linux)');
    const namespace = withoutNamespace();
    if (namespace !== undefined) missing.push(namespace);
    if (hasJava && hasMaven) {
      await installKafka(note).catch((error: Error) => missing.push(`Kafka in ${kafkaFolder()}: ${error.message}`));
    }
    await installMilvus(note).catch((error: Error) =>
      missing.push(`the package milvus of PyPI in ${milvusFolder()} (Linux x64): ${error.message}`),
    );
    return missing;
  },
};
