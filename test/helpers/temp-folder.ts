import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** An empty folder, removed after the test. */
export async function tempFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'trawl-test-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
