import { throwIfCancelled } from '../../base/abort.ts';
import { findIndex, indexProblems } from '../opensearch/check-index.ts';
import { openFoundIndex } from '../opensearch/open-published-index.ts';
import { parseOpenSearchAddress, shownAddress } from '../opensearch/opensearch-address.ts';
import { OpenSearchClient } from '../opensearch/opensearch-client.ts';
import { rowQuery } from '../opensearch/row-query.ts';
import { DOCUMENT_FIELD, ID_FIELD, ROW_FIELD, VECTOR_FIELD, vectorOf } from '../opensearch/stored-rows.ts';
import { ContentSum } from '../published/content-sum.ts';
import { storedRows } from '../published/publication.ts';
import { upperNorm } from '../published/upper-norm.ts';
import type { CollectionReport, VerifyCollectionOptions } from './verify-collection.ts';
import { wordProblems } from './word-problems.ts';

/** Values of vectors that are read at a time, and bytes of documents at most. */
const VALUES_A_READ = 2 ** 19;
const BYTES_A_READ = 2 ** 25;
const PIECE_BYTES = 65_535;
/** After these many, it reads no further. */
const MAX_PROBLEMS = 20;

/**
 * Checks a published index: that its shards are there, its mapping is as published and its rows are complete, the checksums of the files,
 * and, unless `quick`, the checksum of all rows with vectors, ids and documents.
 */
export async function verifyOpenSearch(
  place: string,
  { quick, signal, onProgress }: VerifyCollectionOptions,
): Promise<CollectionReport> {
  const address = parseOpenSearchAddress(place);
  const client = await OpenSearchClient.connect(address);
  try {
    const found = await findIndex(client, address);
    const report = { address: shownAddress(address), rows: storedRows(found.publication) };
    const problems = (await indexProblems(client, found)).map(({ message }) => message);
    if (problems.length > 0) return { ...report, problems };
    // Reads the files and compares their checksums.
    const published = await openFoundIndex(client, found, async () => undefined);
    try {
      if (!quick) problems.push(...(await wordProblems(published, signal)));
    } finally {
      await published.close();
    }
    if (quick) return { ...report, problems };
    const { manifest, pieces, contentSum, largestNorm } = found.publication;
    const { rows, dimension } = manifest;
    const sum = new ContentSum();
    const atOnce = Math.max(
      1,
      Math.min(1_000, Math.floor(VALUES_A_READ / dimension), Math.floor(BYTES_A_READ / (pieces * PIECE_BYTES))),
    );
    for (let first = 0; first < rows && problems.length < MAX_PROBLEMS; first += atOnce) {
      throwIfCancelled(signal);
      onProgress(first, rows);
      const { hits } = await client.search(
        found.name,
        {
          size: atOnce,
          query: rowQuery({ type: 'range', first, end: first + atOnce }),
          docvalue_fields: [ROW_FIELD, VECTOR_FIELD],
          _source: [DOCUMENT_FIELD, ID_FIELD],
        },
        signal,
      );
      for (const { fields, _source } of hits) {
        const row = Number(fields?.[ROW_FIELD]?.[0]);
        const base64 = fields?.[VECTOR_FIELD]?.[0];
        if (base64 === undefined) {
          // An update in OpenSearch loses it, because it is not part of `_source`.
          problems.push(`Row ${row} has no vector.`);
          continue;
        }
        const vector = vectorOf(row, base64, dimension);
        const id = (_source?.[ID_FIELD] as string | undefined) ?? null;
        sum.add({ row, vector, id, document: String(_source?.[DOCUMENT_FIELD]), keys: [] });
        if (upperNorm(vector, 0, dimension) > largestNorm)
          problems.push(`Row ${row} is longer than any published vector.`);
      }
    }
    if (sum.hex !== contentSum) {
      problems.push(
        `The rows of ${found.name} have the checksum ${sum.hex}, but ${contentSum} was published. Publish the index again, under another name.`,
      );
    }
    return { ...report, problems };
  } finally {
    await client.close();
  }
}
