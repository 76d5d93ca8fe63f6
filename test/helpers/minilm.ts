import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { miniLmFolder } from './peers.ts';

/**
 * Imports all-MiniLM-L6-v2 once for the tests of a file and removes it after them. Call the result only in tests that
 * `withoutMiniLm` skips.
 */
export function importedMiniLm(): () => Promise<string> {
  let imported: Promise<string> | undefined;
  const scratch = mkdtempSync(join(tmpdir(), 'trawl-test-'));
  after(() => rm(scratch, { recursive: true, force: true }));
  return () => {
    imported ??= importModel(miniLmFolder()!, {
      out: join(scratch, 'all-MiniLM-L6-v2'),
      name: 'all-MiniLM-L6-v2',
      precisions: ['float32'],
    }).then(({ folder }) => folder);
    return imported;
  };
}
