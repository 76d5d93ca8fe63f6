import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

import { type ErrorCode, TrawlError } from '../../src/base/errors.ts';

/** Writes a file that is deleted after the test. */
export function fileWith(t: Pick<TestContext, 'after'>, content: string | Uint8Array): string {
  const folder = mkdtempSync(join(tmpdir(), 'trawl-evaluation-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'file');
  writeFileSync(file, content);
  return file;
}

/** For `assert.throws` and `assert.rejects`: an error with this code whose message contains all parts. */
export function failsWith(code: ErrorCode, ...parts: readonly string[]): (error: unknown) => boolean {
  return (error) =>
    error instanceof TrawlError && error.code === code && parts.every((part) => error.message.includes(part));
}
