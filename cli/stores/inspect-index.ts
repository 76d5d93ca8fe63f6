import { formatCount } from '../../src/base/format.ts';
import type { OptionTable } from '../../src/base/options/option-spec.ts';
import type { ModelIdentity } from '../../src/encoder/identity/model-identity.ts';
import { findIndex } from '../../src/stores/opensearch/check-index.ts';
import { parseOpenSearchAddress, shownAddress } from '../../src/stores/opensearch/opensearch-address.ts';
import { OpenSearchClient } from '../../src/stores/opensearch/opensearch-client.ts';
import { storedRows } from '../../src/stores/published/publication.ts';
import { type CommandContext, EXIT } from '../program/command.ts';

/** `trawl inspect opensearch://…`. `modelLines` describes the encoder as for a folder. */
export async function inspectIndex(
  place: string,
  { options, out }: Pick<CommandContext<OptionTable>, 'options' | 'out'>,
  modelLines: (model: ModelIdentity) => string[],
): Promise<number> {
  const address = parseOpenSearchAddress(place);
  const client = await OpenSearchClient.connect(address);
  try {
    const { name, facts: found, publication } = await findIndex(client, address);
    const { manifest, indexType, words, wordScores } = publication;
    const stored = { rows: storedRows(publication), shards: Number(found.settings.number_of_shards) };
    if (options.json === true) {
      const scoredBy = wordScores?.scoredBy ?? null;
      const facts = { address: shownAddress(address), collection: name, indexType, stored, bm25ScoredBy: scoredBy };
      out(JSON.stringify({ ...facts, ...manifest }));
      return EXIT.ok;
    }
    const { columns = [], rows, dimension, metric, generation, model } = manifest;
    out(
      [
        shownAddress(address),
        ...(name === address.index ? [] : [`  index         ${name}, of which ${address.index} is an alias`]),
        `  rows          ${formatCount(rows)} × ${dimension}, ${metric}; ${formatCount(stored.rows)} in OpenSearch, without deleted rows`,
        `  generation    ${generation}`,
        `  shards        ${formatCount(stored.shards)}; every row is scored by a script, exact`,
        `  modes         ${words === undefined ? 'dense' : `dense, bm25 and hybrid: OpenSearch's BM25 over the words of ${words.fields.join(' and ')} (${words.analyser}, k1 ${words.k1}, b ${words.b}), counted over all shards`}`,
        ...(columns.length === 0
          ? []
          : [`  columns       ${columns.map((column) => `${column.name} (${column.type})`).join(', ')}`]),
        ...(model === null ? [] : modelLines(model)),
        `  written by    ${manifest.writer}`,
      ].join('\n'),
    );
    return EXIT.ok;
  } finally {
    await client.close();
  }
}
