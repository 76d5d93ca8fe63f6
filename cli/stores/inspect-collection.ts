import { formatCount } from '../../src/base/format.ts';
import type { OptionTable } from '../../src/base/options/option-spec.ts';
import { findCollection } from '../../src/stores/milvus/check-collection.ts';
import { parseMilvusAddress, shownAddress } from '../../src/stores/milvus/milvus-address.ts';
import { MilvusClient } from '../../src/stores/milvus/milvus-client.ts';
import { EXACT_INDEX } from '../../src/stores/milvus/open-published-index.ts';
import { storedRows } from '../../src/stores/published/publication.ts';
import { type CommandContext, EXIT } from '../program/command.ts';

/** `trawl inspect milvus://…`. `modelLines` describes the encoder as for a folder. */
export async function inspectCollection(
  place: string,
  { options, out }: Pick<CommandContext<OptionTable>, 'options' | 'out'>,
  modelLines: (
    model: NonNullable<Awaited<ReturnType<typeof findCollection>>['publication']['manifest']['model']>,
  ) => string[],
): Promise<number> {
  const address = parseMilvusAddress(place);
  const client = await MilvusClient.connect(address);
  try {
    const { name, publication } = await findCollection(client, address);
    const { manifest, indexType } = publication;
    const stored = { rows: storedRows(publication), segments: (await client.segments(name)).length };
    if (options.json === true) {
      out(JSON.stringify({ address: shownAddress(address), collection: name, indexType, stored, ...manifest }));
      return EXIT.ok;
    }
    const { columns = [], rows, dimension, metric, generation, model } = manifest;
    const exactness = indexType === EXACT_INDEX ? 'exact' : 'approximate: replies say exact: false';
    out(
      [
        shownAddress(address),
        ...(name === address.collection ? [] : [`  collection    ${name}, of which ${address.collection} is an alias`]),
        `  rows          ${formatCount(rows)} × ${dimension}, ${metric}; ${formatCount(stored.rows)} in Milvus, without deleted rows`,
        `  generation    ${generation}`,
        `  index         ${indexType}, ${exactness}; ${formatCount(stored.segments)} segments loaded`,
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
