import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import type { Bm25Settings } from '../../src/engine/lexical/lexical-settings.ts';
import { fieldText } from '../../src/index/passages/document-fields.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';

const BLOCK_ROWS = 1_024;

/**
 * Whether an inverted index of titles would be empty because none of the passages has one. Reads up to the first title.
 *
 * @throws TrawlError CANCELLED, errors of the passage files.
 */
export function lacksTitles(
  bm25: Bm25Settings | undefined,
  passageFiles: readonly string[],
  signal?: AbortSignal,
): boolean {
  if (bm25?.fields.includes('title') !== true) return false;
  for (const path of passageFiles) {
    const file = new PassageFile(path);
    try {
      for (let first = 0; first < file.rows; first += BLOCK_ROWS) {
        throwIfCancelled(signal);
        if (file.range(first, BLOCK_ROWS).some(isTitled)) return false;
      }
    } finally {
      file.close();
    }
  }
  return true;
}

function isTitled(document: string): boolean {
  return fieldText(document, 'title').trim() !== '';
}

const WHERE_TITLES_ARE = 'A title is the column title, or the first line of a contents that has several lines.';

export function noTitles(): TrawlError {
  return new TrawlError(
    'CONFIG_INVALID',
    `--bm25-fields is title,text, but no passage has a title. ${WHERE_TITLES_ARE} Use --bm25-fields contents instead.`,
  );
}

/** A note, not an error: passages of other shards, which a job does not know, may have titles. */
export function noTitlesInShard(folder: string): string {
  return `${folder}: no passage of this shard has a title, which --bm25-fields title,text looks for. ${WHERE_TITLES_ARE}`;
}

/** The problem that a plan reports if a field needs titles and none of the first passages has one; otherwise undefined. */
export function noTitlesInSample(bm25: Bm25Settings | undefined, documents: readonly string[]): string | undefined {
  if (bm25?.fields.includes('title') !== true || documents.length === 0 || documents.some(isTitled)) return undefined;
  return (
    `None of the first passages of the corpus (${documents.length}) has a title, which --bm25-fields title,text looks for. ` +
    WHERE_TITLES_ARE
  );
}
