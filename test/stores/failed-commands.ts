import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { type Ended, endOf, spawnTrawl } from '../cli/run-trawl.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/** A command that failed with this exit code and reason, without showing a password. */
export function assertFails({ code, stderr, stdout }: Ended, exitCode: number, reason: RegExp): void {
  assert.equal(code, exitCode, stderr);
  assert.match(stderr, reason);
  assert.doesNotMatch(stderr + stdout, /secret/);
}

/** A search at the address without the store's optional package fails with the command that installs it. */
export async function assertNeedsPackage(t: TestContext, address: string, name: string): Promise<void> {
  const hook = join(await tempFolder(t), 'hook.mjs');
  writeFileSync(
    hook,
    `import { registerHooks } from 'node:module';
     registerHooks({ resolve(name, context, next) {
       if (name !== '${name}') return next(name, context);
       throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
     } });`,
  );
  const env = { NODE_OPTIONS: `--import=${pathToFileURL(hook)}` };
  const ended = await endOf(spawnTrawl(['search', address, 'x'], { env }));
  assertFails(ended, 1, new RegExp(`npm install ${name}[\\s\\S]*\\[PACKAGE_MISSING\\]`));
}
