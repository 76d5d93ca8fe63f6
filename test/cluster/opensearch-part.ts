import { spawnSync } from 'node:child_process';
import { installOpenSearch } from '../peers/opensearch-node.ts';
import type { ClusterPart } from './cluster-part.ts';
import { withoutNamespace } from './namespace.ts';

const has = (program: string, ...args: string[]): boolean => spawnSync(program, args).status === 0;

/** OpenSearch with three nodes. */
export const openSearchPart: ClusterPart = {
  name: 'opensearch',
  async prepare(note) {
    const missing: string[] = [];
    const hasJava = has('javac', '-version');
    if (!hasJava) missing.push('a JDK of version 17 or newer (Debian: apt-get install openjdk-17-jdk-headless)');
    const hasMaven = has('mvn', '--version');
    if (!hasMaven) missing.push('Maven, which fetches OpenSearch (Debian: apt-get install maven)');
    if (!has('setpriv', '--version')) missing.push('setpriv (Debian: apt-get install util-linux)');
    const namespace = withoutNamespace();
    if (namespace !== undefined) missing.push(namespace);
    if (hasJava && hasMaven)
      await installOpenSearch(note).catch((error: Error) => missing.push(`OpenSearch: ${error.message}`));
    return missing;
  },
};
