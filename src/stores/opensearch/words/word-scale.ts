import { TrawlError } from '../../../base/errors.ts';
import type { WordProbe } from '../../published/word-probe.ts';
import type { OpenSearchClient } from '../opensearch-client.ts';
import { ROW_FIELD } from '../stored-rows.ts';
import { wordField } from './stored-words.ts';

/**
 * Whether OpenSearch's BM25 has the factor k1 + 1: it had it before version 3. Found out by searching a term whose best row and score
 * were recorded when the index was published. This also shows that the counts of all rows, on which every score depends, are those of the
 * publication.
 *
 * @throws TrawlError STORE_DIFFERS if the score is neither.
 */
export async function hasK1Factor(
  client: OpenSearchClient,
  index: string,
  probes: readonly WordProbe[],
): Promise<boolean> {
  if (probes.length === 0) return false;
  const replies = await client.searchMany(
    index,
    probes.map(({ field, term }) => ({
      size: 1,
      query: { term: { [wordField(field)]: term } },
      sort: [{ _score: 'desc' }, { [ROW_FIELD]: 'asc' }],
      track_total_hits: false,
      _source: false,
    })),
    undefined,
    { ofAllShards: true },
  );
  const factors = probes.map(({ field, term, row, score, factoredScore }, i) => {
    const sort = replies[i]!.hits[0]?.sort;
    // OpenSearch writes a float32 with as few digits as tell it from others.
    const [found, at] = [Math.fround(Number(sort?.[0])), Number(sort?.[1])];
    if (at === row && found === score) return false;
    if (at === row && found === factoredScore) return true;
    throw new TrawlError(
      'STORE_DIFFERS',
      `The index ${index} of OpenSearch at ${client.server} scores the word ${JSON.stringify(term)} of ${field} with ${found} in row ${at}; ` +
        `expected ${score} (or ${factoredScore}) in row ${row}. What was published was written to since. Publish the index again, under another name.`,
    );
  });
  return factors.includes(true);
}
