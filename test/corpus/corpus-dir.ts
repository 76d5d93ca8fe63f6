import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';

import { type CorpusOptions, openCorpus } from '../../corpus/open-corpus.ts';
import type { Passage } from '../../corpus/passage.ts';
import { type ErrorCode, TrawlError } from '../../src/base/errors.ts';

/** A temporary directory for a test. `write` returns the path of the new file. */
export function corpusDir(t: Pick<TestContext, 'after'>): {
  path: string;
  write: (name: string, content: string | Uint8Array) => string;
} {
  const path = mkdtempSync(join(tmpdir(), 'trawl-corpus-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return {
    path,
    write(name, content) {
      const file = join(path, name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
      return file;
    },
  };
}

export async function readAll(paths: string | readonly string[], options?: CorpusOptions): Promise<Passage[]> {
  const passages: Passage[] = [];
  for await (const passage of openCorpus(typeof paths === 'string' ? [paths] : paths, options)) passages.push(passage);
  return passages;
}

/** For `assert.throws` and `assert.rejects`: expects an error with this code and all parts in its message. */
export function failsWith(code: ErrorCode, ...parts: readonly (string | RegExp)[]): (error: unknown) => true {
  return (error) => {
    if (!(error instanceof TrawlError)) throw new Error(`expected a TrawlError ${code}`, { cause: error });
    if (error.code !== code) throw new Error(`expected ${code}, got ${error.code}: ${error.message}`, { cause: error });
    for (const part of parts) {
      const found = typeof part === 'string' ? error.message.includes(part) : part.test(error.message);
      if (!found) throw new Error(`expected ${String(part)} in the message: ${error.message}`, { cause: error });
    }
    return true;
  };
}
