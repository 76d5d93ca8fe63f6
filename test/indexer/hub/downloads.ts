import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type DownloadOptions, downloadRepository } from '../../../indexer/hub/download-repository.ts';
import { type HubRepositoryContent, HubServer } from '../../helpers/hub-server.ts';
import { seededBytes } from '../../helpers/seeded-bytes.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

export const BIG = seededBytes(7, 300_000);
export const CONTENT: HubRepositoryContent = {
  name: 'org/some-model',
  refs: ['v1', 'refs/pr/1'],
  files: {
    'config.json': Buffer.from('{"a": 1}'),
    'empty.txt': Buffer.alloc(0),
    'big.bin': BIG,
    'deep/er/name with spaces & ünïcödé #1?.txt': Buffer.from('text'),
    'exactly.bin': seededBytes(8, 65_536),
  },
};

export const TOTAL = Object.values(CONTENT.files).reduce((sum, bytes) => sum + bytes.length, 0);

export interface Case {
  readonly hub: HubServer;
  readonly folder: string;
  fetch(options?: Partial<DownloadOptions>): ReturnType<typeof downloadRepository>;
}

/** A hub with one repository, and a function that downloads it into a folder of the test. */
export async function start(t: TestContext, content: HubRepositoryContent = CONTENT): Promise<Case> {
  const hub = await HubServer.start(content);
  t.after(() => hub.close());
  const folder = join(await tempFolder(t), 'into');
  hub.hasKept = (path, bytes) =>
    (statSync(join(folder, `${path}.partial`), { throwIfNoEntry: false })?.size ?? 0) >= bytes;
  return {
    hub,
    folder,
    fetch: (options = {}) =>
      downloadRepository({
        repository: { type: content.type ?? 'model', name: content.name },
        into: folder,
        settings: { endpoint: hub.endpoint, token: undefined, offline: false },
        retry: { firstWaitMs: 1, maxWaitMs: 2, attempts: 4 },
        stallMs: 5000,
        ...options,
      }),
  };
}

export function assertWhole(folder: string, content: HubRepositoryContent = CONTENT): void {
  for (const [path, bytes] of Object.entries(content.files)) {
    assert.ok(readFileSync(join(folder, path)).equals(bytes), path);
    assert.ok(!existsSync(join(folder, `${path}.partial`)), `${path}.partial is left`);
  }
}
