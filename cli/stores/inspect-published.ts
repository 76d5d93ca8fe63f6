import { formatCount } from '../../src/base/format.ts';
import type { ModelIdentity } from '../../src/encoder/identity/model-identity.ts';
import * as milvus from '../../src/stores/milvus/milvus-address.ts';
import { MilvusClient } from '../../src/stores/milvus/milvus-client.ts';
import { EXACT_INDEX, findCollection } from '../../src/stores/milvus/open-published-index.ts';
import { findIndex } from '../../src/stores/opensearch/open-published-index.ts';
import * as openSearch from '../../src/stores/opensearch/opensearch-address.ts';
import { OpenSearchClient } from '../../src/stores/opensearch/opensearch-client.ts';
import { storedRows } from '../../src/stores/published/publication.ts';
import { lines } from '../output/lines.ts';
import { type AnyContext, EXIT } from '../program/command.ts';

/** `trawl inspect milvus://…` and `opensearch://…`. `modelLines` describes the encoder as for a folder. */
export async function inspectPublished(
  place: string,
  { options, out }: Pick<AnyContext, 'options' | 'out'>,
  modelLines: (model: ModelIdentity) => string[],
): Promise<number> {
  const { publication, facts, heading, store, shape } = await (milvus.isMilvusAddress(place)
    ? inspectCollection(place)
    : inspectIndex(place));
  const { manifest } = publication;
  if (options.json) {
    out(JSON.stringify({ ...facts, ...manifest }));
    return EXIT.ok;
  }
  const { columns = [], rows, dimension, metric, generation, model, writer } = manifest;
  out(
    lines(
      ...heading,
      `  rows          ${formatCount(rows)} × ${dimension}, ${metric}; ${formatCount(storedRows(publication))} in ${store}, without deleted rows`,
      `  generation    ${generation}`,
      ...shape,
      columns.length > 0 && `  columns       ${columns.map(({ name, type }) => `${name} (${type})`).join(', ')}`,
      ...(model === null ? [] : modelLines(model)),
      `  written by    ${writer}`,
    ).join('\n'),
  );
  return EXIT.ok;
}

async function inspectCollection(place: string) {
  const address = milvus.parseMilvusAddress(place);
  const client = await MilvusClient.connect(address);
  try {
    const { name, publication } = await findCollection(client, address);
    const { indexType } = publication;
    const stored = { rows: storedRows(publication), segments: (await client.segments(name)).length };
    const shown = milvus.shownAddress(address);
    const exactness = indexType === EXACT_INDEX ? 'exact' : 'approximate: replies say exact: false';
    return {
      publication,
      facts: { address: shown, collection: name, indexType, stored },
      heading: lines(
        shown,
        name !== address.collection && `  collection    ${name}, of which ${address.collection} is an alias`,
      ),
      store: 'Milvus',
      shape: [`  index         ${indexType}, ${exactness}; ${formatCount(stored.segments)} segments loaded`],
    };
  } finally {
    await client.close();
  }
}

async function inspectIndex(place: string) {
  const address = openSearch.parseOpenSearchAddress(place);
  const client = await OpenSearchClient.connect(address);
  try {
    const { name, facts, publication } = await findIndex(client, address);
    const { indexType, words, wordScores } = publication;
    const stored = { rows: storedRows(publication), shards: Number(facts.settings.number_of_shards) };
    const shown = openSearch.shownAddress(address);
    const modes =
      words === undefined
        ? 'dense'
        : `dense, bm25 and hybrid: OpenSearch's BM25 over the words of ${words.fields.join(' and ')} (${words.analyser}, k1 ${words.k1}, b ${words.b}), counted over all shards`;
    return {
      publication,
      facts: { address: shown, collection: name, indexType, stored, bm25ScoredBy: wordScores?.scoredBy ?? null },
      heading: lines(shown, name !== address.index && `  index         ${name}, of which ${address.index} is an alias`),
      store: 'OpenSearch',
      shape: [
        `  shards        ${formatCount(stored.shards)}; every row is scored by a script, exact`,
        `  modes         ${modes}`,
      ],
    };
  } finally {
    await client.close();
  }
}
