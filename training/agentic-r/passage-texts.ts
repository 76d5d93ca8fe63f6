import { createHash } from 'node:crypto';
import { comparableBody } from '../../src/base/comparable-text.ts';
import { contentsOf, textOf } from '../../src/index/passages/contents.ts';
import { shown } from '../trajectories/item-fields.ts';
import { itemError, type ReadItem, readItems } from '../trajectories/read-items.ts';

/** What the construction needs of the passages. */
export interface KnownPassage {
  /** Equal for passages with equal text, whatever their titles (`comparableBody`). */
  readonly textHash: string;
  /** The id in the corpus that was indexed. */
  readonly corpusId: string;
}

/**
 * Reads the passages of a hand-over (`passages.jsonl`), or a corpus whose ids are row numbers, by row. Keeps hashes and ids, not texts.
 *
 * @throws TrawlError CORPUS_BAD_LINE for an id that is not a row number; CORPUS_NOT_FOUND.
 */
export async function readKnownPassages(
  file: string,
  signal?: AbortSignal,
): Promise<ReadonlyMap<number, KnownPassage>> {
  const passages = new Map<number, KnownPassage>();
  for await (const item of readItems(file, { signal })) {
    const contents = contentsOf(item.value);
    if (contents === undefined) throw itemError(item.place, 'expected "contents", or "title" and "text"');
    const corpusId = item.value['corpus_id'] ?? item.value['id'];
    passages.set(rowOf(item), {
      textHash: hashOf(comparableBody({ text: textOf(item.value, contents), contents })),
      corpusId: String(corpusId),
    });
  }
  return passages;
}

function rowOf({ value, place }: ReadItem): number {
  const id = value['id'];
  if (typeof id === 'string' && /^\d{1,15}$/.test(id)) return Number(id);
  throw itemError(
    place,
    `"id" is ${typeof id === 'string' ? JSON.stringify(id.slice(0, 80)) : shown(id)}; expected a row number of the index as a string. trawl agentic-r hand-over writes such a file`,
  );
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64').slice(0, 22);
}
