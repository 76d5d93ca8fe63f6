import { spawnSync } from 'node:child_process';

/**
 * A network of its own, in which nobody else reaches what listens on all addresses. Not processes of its own, with which Milvus loads no
 * segments.
 */
const NAMESPACES = ['--user', '--map-root-user', '--net', '--'];
const LOOPBACK = ['ip', 'link', 'set', 'lo', 'up'];

/** Undefined if this machine allows network namespaces, else why it does not. */
export function withoutNamespace(): string | undefined {
  const { status, error, stderr } = spawnSync('unshare', [...NAMESPACES, ...LOOPBACK], { encoding: 'utf8' });
  if (status === 0) return undefined;
  return `a network namespace (unshare of util-linux, ip of iproute2, and permission for both): ${error?.message ?? stderr.trim()}`;
}

/** The command line that runs a program in a network namespace of its own, whose only address is loopback. */
export function inNamespace(command: readonly string[]): string[] {
  return ['unshare', ...NAMESPACES, 'sh', '-c', `${LOOPBACK.join(' ')} && exec "$@"`, 'sh', ...command];
}
