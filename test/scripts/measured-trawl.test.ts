import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { packageRoot } from '../../src/base/package-root.ts';
import { buildSampleIndex } from '../helpers/sample-index.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const SCRIPT = JSON.stringify(join(packageRoot, 'scripts', 'measured-trawl.mjs'));

/** Runs code with the functions of scripts/measured-trawl.mjs; resolves to what it prints. */
async function run(code: string): Promise<string> {
  const script = `const { serveTrawl, startTrawl } = await import(${SCRIPT});\n${code}`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script]);
  return stdout.trim();
}

test('a measured server that ends before it is ready is an error, not awaited for ever', async (t) => {
  const index = JSON.stringify(join(await tempFolder(t), 'none'));
  assert.match(
    await run(`await serveTrawl([${index}]).catch(({ message }) => console.log(message));`),
    /^trawl serve ended with 1$/,
  );
});

test('an abort ends a measured server, also before it is ready', async (t) => {
  const index = JSON.stringify(await buildSampleIndex(await tempFolder(t)));
  const code = `
    const stop = new AbortController();
    const server = await serveTrawl([${index}], { signal: stop.signal });
    stop.abort();
    await server.stop();
    const { signal } = stop;
    await serveTrawl([${index}], { signal }).catch(({ message }) => console.log(message));`;
  assert.match(await run(code), /^trawl serve ended with /);
});
