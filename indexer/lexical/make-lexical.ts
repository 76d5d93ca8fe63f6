import { readdirSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { type Bm25Settings, isSnowball, STEMMER, UNICODE_VERSION } from '../../src/engine/lexical/lexical-settings.ts';
import { openLexicalWriter } from '../../src/engine/lexical/open-lexical.ts';
import { checkStemmer } from '../../src/engine/lexical/stemmed.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import type { LexicalFileCounts } from '../../src/engine/native/lexical-functions.ts';
import type { FileRecord } from '../../src/index/manifest/schemas.ts';
import type { ShardLexical } from '../../src/index/manifest/shard-manifest.ts';
import { fieldText } from '../../src/index/passages/document-fields.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { fileRecord, lexicalFiles } from '../index-files.ts';

const BLOCK_ROWS = 1_024;

export interface MakeLexicalOptions {
  /**
   * Called with the progress in rows: the finished share of the work over all fields, times the rows of the shard. With two
   * fields, half of the rows are reported when the first index is complete.
   */
  readonly onRows?: (rows: number) => void;
  /** Names of files in the folder that are in use and are not written. */
  readonly inUse?: ReadonlySet<string>;
  readonly signal?: AbortSignal;
}

/** Adds the Unicode version and the stemmers of this program to the settings. */
export function bm25Settings(settings: Omit<Bm25Settings, 'unicode' | 'stemmer'>): Bm25Settings {
  return { ...settings, unicode: UNICODE_VERSION, ...(isSnowball(settings.analyser) ? { stemmer: STEMMER } : {}) };
}

/**
 * Makes the inverted indexes of a shard from its passage file. Each is written under a temporary name and renamed when it is
 * complete. The bytes depend only on the passages and the settings.
 *
 * @param kernel without it, the index is written in TypeScript.
 * @throws TrawlError DISK_FULL, OUTPUT_NOT_WRITABLE, CANCELLED, errors of the passage file; ENGINE_MISSING if there is no kernel
 * and the texts are too many for TypeScript.
 */
export async function makeLexical(
  folder: string,
  passagesPath: string,
  settings: Bm25Settings,
  kernel: Kernel | undefined,
  { onRows, inUse, signal }: MakeLexicalOptions = {},
): Promise<{ bm25: ShardLexical; files: FileRecord[] }> {
  const files: FileRecord[] = [];
  const indexes: ShardLexical['indexes'] = [];
  const passages = new PassageFile(passagesPath);
  try {
    const { rows } = passages;
    for (const [i, field] of settings.fields.entries()) {
      const name = lexicalFiles(field).find((file) => inUse?.has(file) !== true)!;
      const path = join(folder, name);
      const counts = await writeLexical(path, settings, kernel, {
        signal,
        *blocks() {
          for (let first = 0; first < rows; first += BLOCK_ROWS) {
            yield passages.range(first, BLOCK_ROWS).map((document) => fieldText(document, field));
            onRows?.(Math.floor((i * rows + Math.min(rows, first + BLOCK_ROWS)) / settings.fields.length));
          }
        },
      });
      files.push(await fileRecord(path, signal));
      const { documents, tokens, terms, postings } = counts;
      indexes.push({ field, path: name, documents, tokens, terms, postings });
    }
  } finally {
    passages.close();
  }
  return { bm25: { made: { ...settings, fields: [...settings.fields] }, indexes }, files };
}

/**
 * Writes one inverted index under a temporary name and renames it. After a failure it removes the temporary file.
 *
 * @throws TrawlError INDEX_VERSION_UNSUPPORTED if an index's settings name other stemmers than this program has.
 */
export async function writeLexical(
  path: string,
  { analyser, stemmer }: Pick<Bm25Settings, 'analyser' | 'stemmer'>,
  kernel: Kernel | undefined,
  { blocks, signal }: { blocks: () => Iterable<readonly string[]>; signal?: AbortSignal | undefined },
): Promise<LexicalFileCounts> {
  checkStemmer(path, { analyser, stemmer });
  const temporary = `${path}.tmp`;
  await removeSortedFiles(temporary);
  const writer = openLexicalWriter(temporary, analyser, kernel);
  let complete = false;
  let appending: Promise<void> = Promise.resolve();
  try {
    for (const texts of blocks()) {
      throwIfCancelled(signal);
      // The native engine analyses one block while this thread reads the next.
      await appending;
      appending = writer.append(texts, signal);
      appending.catch(() => undefined);
    }
    await appending;
    const counts = await writer.finish(signal);
    await rename(temporary, path);
    complete = true;
    return counts;
  } finally {
    await appending.catch(() => undefined);
    // Frees the writer after an error; `finish` has already freed it, and a second call does nothing.
    writer.abandon();
    if (!complete) await rm(temporary, { force: true });
  }
}

/** Removes the temporary sorted files (`<path>.run-N`) that a killed process left. */
async function removeSortedFiles(path: string): Promise<void> {
  const name = basename(path);
  for (const entry of readdirSync(dirname(path))) {
    if (entry.startsWith(`${name}.run-`)) await rm(join(dirname(path), entry), { force: true });
  }
}
