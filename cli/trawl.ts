#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { packageRoot } from '../src/base/package-root.ts';

/** The command line as few files (scripts/bundle.mjs), which start faster. Without it, for a measurement of coverage, the files of dist/ do. */
const BUNDLE = join(packageRoot, 'dist', 'bundle', 'main.js');

const { isSupported, NEEDED } = (await import(
  pathToFileURL(join(packageRoot, 'scripts', 'supported-node.mjs')).href
)) as { NEEDED: string; isSupported: (version: string) => boolean };

if (isSupported(process.versions.node)) {
  // Imported only now, because better-sqlite3 crashes on Node.js 20.
  const { main } = existsSync(BUNDLE)
    ? ((await import(pathToFileURL(BUNDLE).href)) as typeof import('./program/main.ts'))
    : await import('./program/main.ts');
  // Sets exitCode instead of calling process.exit, so that output to a pipe arrives and open work finishes.
  process.exitCode = await main(process.argv.slice(2));
} else {
  process.stderr.write(
    `trawl: Node.js ${process.version} (${process.execPath}) is too old: Trawl needs ${NEEDED}. Start ` +
      `${join(packageRoot, 'bin', 'trawl')}, which finds the Node.js that \`npm run build\` installs, or install Node.js 24 ` +
      '(https://nodejs.org).\n',
  );
  process.exitCode = 1;
}
