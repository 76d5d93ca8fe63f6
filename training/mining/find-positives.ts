import { documentFields } from '../../src/index/passages/document-fields.ts';
import type { SearchSource } from '../../src/search/retriever.ts';
import type { MinedPassage } from './mined-query.ts';

/** Ids of one look-up. */
const KEYS_PER_CALL = 1000;
/** Passages of one id that are compared with candidates. */
const PASSAGES_PER_ID = 8;

/**
 * The passages of each id, from the whole index; an unknown id has no entry. Their rank and score are null.
 *
 * @throws TrawlError NOT_SUPPORTED if the index has no look-up by id.
 */
export async function findPassages(
  retriever: SearchSource,
  ids: Iterable<string>,
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, readonly MinedPassage[]>> {
  const passages = new Map<string, readonly MinedPassage[]>();
  const keys = [...new Set(ids)];
  for (let start = 0; start < keys.length; start += KEYS_PER_CALL) {
    const part = keys.slice(start, start + KEYS_PER_CALL);
    const { found } = await retriever.find({
      by: 'id',
      keys: part,
      limit: PASSAGES_PER_ID,
      signal,
    });
    for (const [i, ofKey] of found.entries()) {
      if (ofKey.length === 0) continue;
      passages.set(
        part[i]!,
        ofKey.map(({ row, document }) => ({ ...passageFields(document, row), rank: null, score: null })),
      );
    }
  }
  return passages;
}

/** The fields of a stored passage that rows have. */
export function passageFields(document: string, row: number): Omit<MinedPassage, 'rank' | 'score'> {
  const { id, title, text, contents } = documentFields(document);
  return { row, id: id ?? String(row), title: title ?? '', text, contents };
}
